#!/usr/bin/env python3
"""Judges a report of `tidemark check` by the rules of its format, with parsers that are not ours.

usage: validate.py FORMAT FILE [FORMAT FILE]…    (sarif, junit, github, customSmallerIsBetter, bmf, markdown)

Only Python's standard library. One line per file: either the rule that is broken, or what the report
holds in numbers, which the tests compare with what they expect ("tests=5 failures=4").
"""

import json
import re
import sys
import urllib.parse
import xml.etree.ElementTree


class Broken(Exception):
    """A rule that the report breaks."""


def require(condition, rule):
    if not condition:
        raise Broken(rule)


def members(value, where, required, optional=()):
    """An object with these members and no others."""
    require(isinstance(value, dict), f"{where} is an object")
    for key in required:
        require(key in value, f"{where} has '{key}'")
    for key in value:
        require(key in required or key in optional, f"{where} has no '{key}'")
    return value


def text(value, where):
    require(isinstance(value, str) and value, f"{where} is text and not empty")
    return value


def no_constant(name):
    raise Broken(f"{name} is no JSON")


def load(content):
    return json.loads(content, parse_constant=no_constant)


def sarif(content):
    """The parts of SARIF 2.1.0 (OASIS, sections 3.13 to 3.52) that a log of ours may use."""
    log = members(load(content), "sarifLog", ["version", "runs"], ["$schema"])
    require(log["version"] == "2.1.0", "version is 2.1.0")
    require(urllib.parse.urlparse(log["$schema"]).scheme == "https", "$schema is a URI")
    require(isinstance(log["runs"], list) and len(log["runs"]) == 1, "there is one run")
    run = members(log["runs"][0], "run", ["tool", "results"], ["columnKind"])
    require(run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints"), "columnKind is known")
    driver = members(members(run["tool"], "tool", ["driver"])["driver"], "driver",
                     ["name"], ["version", "rules"])
    ids = [sarif_rule(rule) for rule in driver["rules"]]
    require(len(ids) == len(set(ids)), "rule ids are unique")
    prints = [sarif_result(result, ids) for result in run["results"]]
    require(len(prints) == len(set(prints)), "no two results have one fingerprint")
    lines = [result["locations"][0]["physicalLocation"]["region"]["startLine"]
             for result in run["results"]]
    return f"results={len(prints)} rules={','.join(sorted({r['ruleId'] for r in run['results']}))}" \
           f" lines={','.join(str(line) for line in lines)}"


def sarif_rule(rule):
    members(rule, "reportingDescriptor", ["id"], ["shortDescription", "defaultConfiguration"])
    text(members(rule["shortDescription"], "shortDescription", ["text"])["text"], "description")
    level = members(rule["defaultConfiguration"], "defaultConfiguration", ["level"])["level"]
    require(level in ("none", "note", "warning", "error"), "level is known")
    return text(rule["id"], "id")


def sarif_result(result, ids):
    members(result, "result", ["message", "ruleId", "ruleIndex", "level", "locations"],
            ["partialFingerprints"])
    text(members(result["message"], "message", ["text"])["text"], "message")
    require(ids[result["ruleIndex"]] == result["ruleId"], "ruleIndex is that of ruleId")
    require(result["level"] in ("none", "note", "warning", "error"), "level is known")
    require(isinstance(result["locations"], list) and result["locations"], "there is a location")
    place = members(members(result["locations"][0], "location", ["physicalLocation"])
                    ["physicalLocation"], "physicalLocation", ["artifactLocation", "region"])
    uri = members(place["artifactLocation"], "artifactLocation", ["uri"])["uri"]
    require(re.fullmatch(r"(file://)?([A-Za-z0-9._~/-]|%[0-9A-F]{2})+", uri), f"'{uri}' is a URI")
    line = members(place["region"], "region", ["startLine"])["startLine"]
    require(isinstance(line, int) and line >= 1, "startLine counts from one")
    (name, value), = result["partialFingerprints"].items()
    require(re.fullmatch(r"[A-Za-z0-9]+/v[0-9]+", name), "the fingerprint's name has a version")
    return text(value, "fingerprint")


def junit(content):
    root = xml.etree.ElementTree.fromstring(content)
    require(root.tag == "testsuites", "the root is testsuites")
    cases = root.findall("./testsuite/testcase")
    failures = root.findall("./testsuite/testcase/failure")
    for element in [root, *root.findall("./testsuite")]:
        require(int(element.get("tests")) == len(cases), "tests counts the test cases")
        require(int(element.get("failures")) == len(failures), "failures counts the failures")
        require(element.get("errors") == "0", "there are no errors")
    names = [(case.get("classname"), case.get("name")) for case in cases]
    require(len(names) == len(set(names)), "no two test cases have one name")
    return f"tests={len(cases)} failures={len(failures)}"


def github(content):
    """Workflow commands as the runner reads them (actions/runner, ActionCommand.TryParseV2)."""
    annotations = 0
    lines = []
    for line in content.splitlines():
        if not line.startswith("::"):
            require("##[" not in line, "no command of the old form")
            continue
        command = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.+)", line)
        require(command, f"'{line[:60]}' is a workflow command")
        annotations += 1
        properties = dict(pair.split("=", 1) for pair in command[2].split(","))
        require(set(properties) == {"file", "line", "title"}, "file, line and title are given")
        require(int(properties["line"]) >= 1, "lines count from one")
        lines.append(properties["line"])
        for value in [*properties.values(), command[3]]:
            for escape in re.findall(r"%.{0,2}", value):
                require(escape in ("%25", "%0D", "%0A", "%3A", "%2C"), f"{escape} is an escape")
    require(annotations <= 10, "GitHub shows ten annotations of a kind per step")
    return f"annotations={annotations} lines={','.join(lines)}"


def customSmallerIsBetter(content):
    entries = load(content)
    require(isinstance(entries, list), "the root is a list")
    for entry in entries:
        members(entry, "entry", ["name", "unit", "value"], ["range", "extra"])
        text(entry["name"], "name")
        text(entry["unit"], "unit")
        require(isinstance(entry["value"], int), "values are exact")
        for key in ("range", "extra"):
            require(key not in entry or isinstance(entry[key], str), f"{key} is text")
    names = [entry["name"] for entry in entries]
    require(len(names) == len(set(names)), "no two entries have one name")
    return f"entries={len(entries)} sum={sum(entry['value'] for entry in entries)}"


def bmf(content):
    root = load(content)
    require(isinstance(root, dict), "the root is an object")
    count = total = 0
    for name, measures in root.items():
        require(0 < len(name) <= 1024, "names of benchmarks have up to 1024 characters")
        for measure, metric in members(measures, "benchmark", [], list(measures)).items():
            require(re.fullmatch(r"[a-z][a-z0-9-]{0,63}", measure), "a measure is a slug")
            members(metric, "metric", ["value"], ["lower_value", "upper_value"])
            require(isinstance(metric["value"], int), "values are exact")
            count += 1
            total += metric["value"]
    return f"entries={count} sum={total}"


def markdown(content):
    """Tables are rectangles: every row has as many cells as its header."""
    tables = 0
    columns = None
    for line in content.splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        if columns is None:
            columns = cells
            tables += 1
        require(cells == columns, f"'{line[:60]}' has {columns} cells")
    require(len(content.encode()) <= 1 << 20, "a job summary holds 1 MiB")
    return f"tables={tables} headings={len(re.findall('^#{2,3} ', content, re.M))}"


def main():
    arguments = iter(sys.argv[1:])
    for name, path in zip(arguments, arguments):
        with open(path, encoding="utf-8", errors="strict", newline="\n") as file:
            content = file.read()
        try:
            print(globals()[name](content))
        except Broken as rule:
            print(f"broken: {rule}")
        except (KeyError, ValueError, TypeError, SyntaxError) as error:
            print(f"broken: {type(error).__name__} {error}")


main()
