"""Texts in one place are only worth it if nothing there is malformed or said twice."""

import string

from stromboli.api import names

TEXTS = {
    f"{key}[{index}]": text
    for key, value in vars(names).items()
    if key.isupper()
    for index, text in enumerate([value] if isinstance(value, str) else value)
}


def test_every_template_can_be_filled() -> None:
    for key, text in TEXTS.items():
        fields = [field for _, field, _, _ in string.Formatter().parse(text) if field is not None]
        filled = text.format(
            *("x" for field in fields if not field), **{field: "x" for field in fields if field}
        )
        assert "{" not in filled, key


def test_no_label_or_annotation_has_two_names() -> None:
    keys = [text for text in TEXTS.values() if "volcano.sh/" in text]
    assert len(keys) == len(set(keys))


def test_what_users_read_reads_well() -> None:
    assert names.INSUFFICIENT.format("cpu") == "Insufficient cpu"
    assert (
        names.GANG_UNSCHEDULABLE.format(count=1, total=3, message="why")
        == "1/3 tasks in gang unschedulable: why"
    )
    assert (
        names.SUCCESSFULLY_ASSIGNED.format(namespace="a", name="b", node="n")
        == "Successfully assigned a/b to n"
    )
