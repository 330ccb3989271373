"""What goes wrong, in one line: where, what is wrong, and what would be right."""

from __future__ import annotations


class TidemarkError(Exception):
    """An input that cannot be taken: the message names its file and place, and the remedy."""


class UsageError(TidemarkError):
    """An option that is unknown, has no such value, or contradicts another."""
