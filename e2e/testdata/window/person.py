#!/usr/bin/python3
"""A person at a window, by the accessibility tree: one order a line in JSON, one answer a line.

{"do": "wait" | "press" | "gone" | "text", "pid": N, "role": "button", "name": "regular expression", "within": seconds}

Nothing goes by places on the screen: what has no role and name cannot be found, by nobody.
"""
import json
import re
import sys
import time

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi  # noqa: E402

Atspi.init()
Atspi.set_timeout(4000, 15000)

ROLES = {
    "button": {"push button", "button"},
    "link": {"link"},
    "heading": {"heading"},
    "checkbox": {"check box"},
    "text": None,  # anything whose name or text it is
    "window": {"frame", "window"},
    "alert": {"alert", "dialog", "status bar", "notification"},
}


def applications(pid):
    desktop = Atspi.get_desktop(0)
    desktop.clear_cache()
    for i in range(desktop.get_child_count()):
        try:
            one = desktop.get_child_at_index(i)
            if one is not None and one.get_process_id() == pid:
                yield one
        except Exception:
            continue


def walk(node, depth=0):
    if depth > 60:
        return
    try:
        node.clear_cache()
        yield node
        count = node.get_child_count()
    except Exception:
        return
    for i in range(count):
        try:
            child = node.get_child_at_index(i)
        except Exception:
            continue
        if child is not None:
            yield from walk(child, depth + 1)


def words(node):
    """The name, and the text where there is any."""
    name = node.get_name() or ""
    text = ""
    try:
        if "Text" in node.get_interfaces():
            text = Atspi.Text.get_text(node, 0, -1)
    except Exception:
        pass
    return name, text.replace("\ufffc", "")


def matches(node, role, pattern):
    wanted = ROLES[role]
    if wanted is not None and node.get_role_name() not in wanted:
        return False
    name, text = words(node)
    return pattern.search(name) is not None or (wanted is None and pattern.search(text) is not None)


def find(order):
    pattern = re.compile(order["name"])
    for app in applications(order["pid"]):
        for node in walk(app):
            try:
                if matches(node, order["role"], pattern):
                    return node
            except Exception:
                continue
    return None


def dump(pid):
    lines = []
    for app in applications(pid):
        for node in walk(app):
            try:
                name, text = words(node)
                if name or text:
                    lines.append(f"{node.get_role_name()}: {name!r} {text!r}")
            except Exception:
                continue
    return lines


def act(node):
    for i in range(node.get_n_actions()):
        if node.do_action(i):
            return True
    return False


def obey(order):
    if order["do"] == "text":
        return {"ok": True, "text": dump(order["pid"])}
    until = time.monotonic() + order.get("within", 60)
    while True:
        node = find(order)
        if order["do"] == "gone" and node is None:
            return {"ok": True}
        if node is not None and order["do"] == "wait":
            return {"ok": True, "text": list(words(node))}
        if node is not None and order["do"] == "press":
            states = node.get_state_set()
            if states.contains(Atspi.StateType.ENABLED) and act(node):
                return {"ok": True}
        if time.monotonic() > until:
            return {"ok": False, "text": dump(order["pid"])}
        time.sleep(0.1)


for line in sys.stdin:
    try:
        answer = obey(json.loads(line))
    except Exception as error:  # the test says what it was about
        answer = {"ok": False, "text": [repr(error)]}
    print(json.dumps(answer), flush=True)
