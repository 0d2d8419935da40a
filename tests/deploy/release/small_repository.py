"""A repository of a few files that can be released, in seconds."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from deploy.release.release_plan import Release

VERSION = "1.2.3"
FILES = {
    "README.md": "# Stromboli\n",
    "LICENSE": "Apache-2.0\n",
    ".gitignore": "dist/\n",
    "CHANGELOG.md": f"# Changelog\n\n## [Unreleased]\n\n## [{VERSION}] - 2027-01-31\n\n- Something new.\n",
    "changelog.d/README.md": "# Changelog fragments\n",
    "pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "stromboli"
requires-python = ">=3.11"
readme = "README.md"
license-files = ["LICENSE"]
dynamic = ["version"]
[project.scripts]
stromboli = "stromboli:main"
[tool.hatch.version]
path = "src/stromboli/__init__.py"
[tool.hatch.build.targets.sdist]
include = [
    "/src", "/examples", "/LICENSE", "/README.md", "/CHANGELOG.md", "/changelog.d", "/deploy", "/docs", "/packages",
    "/*.lock",
]
[tool.hatch.build.targets.wheel]
packages = ["src/stromboli"]
[tool.hatch.build.targets.wheel.force-include]
"examples/demo" = "stromboli/cli/demo/manifests"
""",
    "src/stromboli/__init__.py": f"""__version__ = "{VERSION}"


def main():
    print("stromboli", __version__)
""",
    "src/stromboli/page.css": "body {}\n",
    "examples/demo/00-teams.yaml": "kind: List\n",
    "packages/vcctl/README.md": "# vcctl\n",
    "packages/vcctl/pyproject.toml": """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "stromboli-vcctl"
requires-python = ">=3.11"
readme = "README.md"
dynamic = ["version"]
[project.scripts]
vcctl = "stromboli:main"
[tool.hatch.version]
path = "../../src/stromboli/__init__.py"
[tool.hatch.build.targets.wheel]
bypass-selection = true
""",
    "deploy/Containerfile": f"""# podman build -f deploy/Containerfile -t stromboli:{VERSION} .
FROM python AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY examples/demo ./examples/demo
RUN mkdir -p /dist && touch /dist/made

FROM python
RUN python -m venv --without-pip /opt/stromboli \\
    && printf '#!/bin/sh\\necho stromboli {VERSION}' > /opt/stromboli/bin/stromboli \\
    && chmod 755 /opt/stromboli/bin/stromboli
USER 65532:65532
ENTRYPOINT ["stromboli"]
""",
    "deploy/Containerfile.dockerignore": "*\n!src\n!examples/demo\n!LICENSE\n!README.md\n!pyproject.toml\n",
    "deploy/scheduler/kustomization.yaml": f"images:\n  - name: stromboli\n    newTag: {VERSION}\n",
    "deploy/chart/Chart.yaml": f"apiVersion: v2\nname: stromboli\nversion: {VERSION}\nappVersion: {VERSION}\n",
    "deploy/chart/templates/pod.yaml": """apiVersion: v1
kind: Pod
metadata:
  name: stromboli
spec:
  containers:
    - name: main
      image: stromboli:{{ .Chart.AppVersion }}
""",
    "docs/install.md": f"podman push registry.example.com/stromboli:{VERSION}\n",
}


class SmallRepository:
    """Files under git, and the release of its last commit."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for path, text in FILES.items():
            self.write(path, text)
        self.git("init", "-q")
        self.commit()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def git(self, *arguments: str) -> str:
        ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
        command = ("git", *ann, *arguments)
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout

    def commit(self) -> Release:
        """Commit all files."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "Change something")
        return self.release()

    def release(self, **options: object) -> Release:
        commit, committed, epoch = self.git("log", "-1", "--format=%H%n%cI%n%ct").split()
        plain = Release(
            root=self.root,
            out=self.root / "dist",
            version=VERSION,
            commit=commit,
            committed=committed,
            epoch=int(epoch),
            signer="Ann <ann@example.com>",
        )
        return replace(plain, **options)  # type: ignore[arg-type]


def program(path: Path, body: str) -> None:
    """Write a shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
