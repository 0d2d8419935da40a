"""The commands of `stromboli queue`."""

from __future__ import annotations

from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.queue.queue_deletion import delete
from stromboli.cli.queue.queue_editing import create, set_fields
from stromboli.cli.queue.queue_listing import get_queues, list_queues
from stromboli.cli.queue.queue_state import close_queues, open_queues
from stromboli.cli.queue.queue_tree_command import tree

queue = subcommands("Create, list, draw, change, open, close and delete queues.")
for name, command in (
    ("create", create),
    ("list", list_queues),
    ("get", get_queues),
    ("tree", tree),
    ("set", set_fields),
    ("open", open_queues),
    ("close", close_queues),
    ("delete", delete),
):
    queue.command(name, cls=Command)(command)
