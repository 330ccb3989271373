"""What goes wrong in a sentence that says what to do."""

from __future__ import annotations

from ..errors import TidemarkError


class CaptureError(TidemarkError):
    """A step that cannot be captured: what is wrong, and what would be right."""
