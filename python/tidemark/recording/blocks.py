"""Transformer blocks, stages' layers and the like: what a model runs again and again, by module path.

A list of modules, as ModuleList and Sequential name theirs by numbers, is one of blocks if its
members are of one class and hold no such list of their own members that differ in structure.
"""

from __future__ import annotations

import collections
import re

Call = tuple[str, int, int]  # module path, first operation, one past the last

MEMBER = re.compile(r"^(.*?)\.?(\d+)$")


def lists_of(classes: dict[str, str]) -> dict[str, list[str]]:
    """Per path of a list, its members of one class, two or more."""
    members: dict[str, list[str]] = collections.defaultdict(list)
    for path in classes:
        found = MEMBER.match(path)
        if found:
            members[found.group(1)].append(path)
    return {path: names for path, names in members.items()
            if len(names) > 1 and len({classes[name] for name in names}) == 1}


def structure(classes: dict[str, str], path: str) -> tuple[str, ...]:
    return tuple(name for key, name in classes.items() if key.startswith(path + "."))


def chosen_members(classes: dict[str, str]) -> set[str]:
    """Members of the outermost lists, but of lists within where the members differ in structure."""
    lists = lists_of(classes)
    has_module_inside = {path for path in lists
                         if any(structure(classes, name) for name in lists[path])}
    chosen: set[str] = set()
    for path in sorted(has_module_inside, key=lambda text: text.count(".")):
        names = lists[path]
        if any(name.startswith(member + ".") for member in chosen for name in names):
            continue
        alike = len({structure(classes, name) for name in names}) == 1
        has_lists = any(other.startswith(name + ".") and other in has_module_inside
                        for name in names for other in lists)
        if alike or not has_lists:
            chosen |= set(names)
    return chosen


def blocks_of(classes: dict[str, str], calls: list[Call],
              named: set[str] | None = None) -> list[tuple[int, Call]]:
    """Calls of chosen members, or of those named, with their number in `calls`; none within
    another."""
    chosen = chosen_members(classes) if named is None else named
    blocks: list[tuple[int, Call]] = []
    for number, call in enumerate(calls):
        name, begin, end = call
        if name in chosen and end > begin and (not blocks or begin >= blocks[-1][1][2]):
            blocks.append((number, call))
    return blocks
