"""What a patch means here beyond the standard, said as the standard has it, for libraries that know no more.

differences.json says which of these readings there are, and why:

- `described`: an element that a path describes is made where it is not there; the first of all is primary.
- `values`: a removal with values takes those elements.
- `once`: elements that are equal apart from their mark as primary are one.
- `contents`: an element that has nothing but type and primary is none; in the end one without its value is none either.
"""

import json
import re

DESCRIBED = re.compile(r"(\w+)\[((?:type eq \"\w+\"|primary eq true)(?: and primary eq true)?)\](?:\.(\w+))?")


def plainly(readings, try_patch, resource, operations):
    """The operations in the standard's words. `try_patch` does some on a resource; what is no object is a refusal."""
    made = []
    for one in operations:
        found = DESCRIBED.fullmatch(one.get("path", ""))
        if "values" in readings and one["op"] == "remove" and "value" in one:
            made += by_filter(one)
        elif "described" in readings and found and one["op"] != "remove":
            there = try_patch(resource, made) if made else resource
            is_new = isinstance(there, dict) and not isinstance(try_patch(resource, [*made, one]), dict)
            made += described(readings, found, one["value"], not there.get(found[1])) if is_new else [one]
        else:
            made.append(one)
    return made


def by_filter(operation):
    """The removal of elements by their values, or as they are where they have none, as one removal for each."""
    name, value = operation["path"], operation["value"]
    values = value if isinstance(value, list) else [value]
    return [{"op": "remove", "path": f"{name}[{exactly(name, one)}]"} for one in values]


def exactly(name, element):
    """The filter that finds the element."""
    if "value" in element:
        return f"value eq {json.dumps(element['value'])}"
    has = [f"{part} eq {json.dumps(value)}" for part, value in element.items()]
    parts = ("locality", "country") if name == "addresses" else ("value", "display")
    return " and ".join(has + [f"not ({part} pr)" for part in parts if part not in element])


def described(readings, found, value, is_first):
    """The addition of the element that a path describes, with what is written to it, if it is one."""
    name, conditions, part = found.groups()
    element = {}
    for condition in conditions.split(" and "):
        told, _, literal = condition.split(" ")
        element[told] = json.loads(literal)
    if is_first:
        element["primary"] = True
    there = elements(readings, [element | ({part: value} if part else value)])
    return [{"op": "add", "path": name, "value": there}] if there else []


def is_said(element):
    """Whether an element has a value, or is an address, which has none."""
    return bool(element.get("value")) or bool(element.keys() - {"value", "display", "type", "primary"})


def elements(readings, found):
    """The elements that there are."""
    if "contents" in readings:
        found = [one for one in found if one.keys() - {"type", "primary"}]
    if "once" in readings:
        marked = sorted(found, key=lambda one: "primary" in one)
        found = list({json.dumps(one | {"primary": True}, sort_keys=True): one for one in marked}.values())
    return found
