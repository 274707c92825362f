"""Libraries of others, each asked which resources a filter finds and what a patch makes of a resource.

A library gets what it needs to understand the question, and nothing that answers it:

- scim2-models knows the schemas that the server advertises.
- scim2-filter-parser makes SQL, which SQLite runs on a table of the resources, a row for each of several values.
- scim2-parse-filter, scimmy and scim-patch (judges.mjs) know no schema: what case does not count for is in small
  letters, and attributes are there behind their URN, too.
"""

import json
import re
import sqlite3
import subprocess
from itertools import product

from scim2_filter_parser.lexer import SCIMLexer
from scim2_filter_parser.parser import SCIMParser
from scim2_filter_parser.transpilers.sql import Transpiler
from scim2_models import Extension, PatchOp, Resource, Schema, ScimFilter

from people import CORE, ENTERPRISE, GROUP

PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
COMPARED = re.compile(r'([\w.]+)( \w\w )("(?:[^"\\]|\\.)*")')


class NoOpinion(Exception):
    """The library does not understand the question, or refuses it."""


def asked(question, *about):
    """What a library says, or how it fails: it may do so as it likes."""
    try:
        return question(*about)
    except Exception as error:
        return NoOpinion(f"{type(error).__name__}: {error}")


def ask_node(program, questions):
    text = json.dumps(questions)
    told = subprocess.run(["node", program], input=text, capture_output=True, text=True, check=False)
    if told.returncode:
        raise SystemExit(f"judges.mjs: {told.stderr}")
    return json.loads(told.stdout)


def opinion(told):
    return told["is"] if "is" in told else NoOpinion(told["fails"])


class Judges:
    """The libraries, for a server with these schemas (documents by URN)."""

    def __init__(self, program, schemas):
        self.program = program
        made = {urn: Schema.model_validate(one) for urn, one in schemas.items()}
        extended = Extension.from_schema(made[ENTERPRISE])
        self.models = {CORE: Resource.from_schema(made[CORE])[extended], GROUP: Resource.from_schema(made[GROUP])}
        self.exact = {"id", "externalId"}
        for one in schemas.values():
            for attribute in one["attributes"]:
                parts = {f"{attribute['name']}.{part['name']}": part for part in attribute.get("subAttributes", [])}
                self.exact |= {
                    name for name, part in ({attribute["name"]: attribute} | parts).items() if part.get("caseExact")
                }

    def model(self, resource):
        return self.models[GROUP if GROUP in resource["schemas"] else CORE]

    def find(self, filters, resources):
        """For each filter what each library finds: a set of ids, or a failure."""
        small = [self.folded(one) for one in resources]
        table = Table(small)
        in_small = [self.folded_filter(one) for one in filters]
        others = ask_node(self.program, {"find": in_small, "resources": small})
        models = self.models_find(filters, resources)
        return [
            {
                "scim2-models": told,
                "scim2-filter-parser": asked(table.find, fold),
                **{name: set(opinion(said)) if "is" in said else opinion(said) for name, said in other.items()},
            }
            for told, fold, other in zip(models, in_small, others, strict=True)
        ]

    def models_find(self, filters, resources):
        """For each filter what scim2-models finds."""
        model = self.model(resources[0])
        whole = [model.model_validate(one) for one in resources]

        def found(text):
            made = ScimFilter[model](text)
            return {one.id for one in whole if made.match(one)}

        return [asked(found, one) for one in filters]

    def patch(self, questions):
        """For each resource with its operations what each library makes of it: a resource, or a failure."""
        others = ask_node(self.program, {"patch": questions})
        return [
            {
                "scim2-models": self.try_patch(resource, operations),
                **{name: opinion(told) for name, told in other.items()},
            }
            for (resource, operations), other in zip(questions, others, strict=True)
        ]

    def try_patch(self, resource, operations):
        return asked(self.models_patch, resource, operations) if operations else resource

    def models_patch(self, resource, operations):
        model = self.model(resource)
        patched = model.model_validate(resource)
        PatchOp[model].model_validate({"schemas": [PATCH], "Operations": operations}).patch(patched)
        return patched.model_dump()

    def folded(self, value, at=""):
        """A resource in which all is in small letters for which case does not count."""
        if isinstance(value, dict):
            before = "" if at == ENTERPRISE else f"{at}."
            return {name: self.folded(one, f"{before}{name}".lstrip(".")) for name, one in value.items()}
        if isinstance(value, list):
            return [self.folded(one, at) for one in value]
        return value.lower() if isinstance(value, str) and at not in self.exact else value

    def folded_filter(self, text):
        """A filter in which all values are in small letters for which case does not count."""

        def fold(found):
            return found[0] if found[1] in self.exact else found[1] + found[2] + found[3].lower()

        return COMPARED.sub(fold, text)


class Columns(dict):
    """The columns that names stand for, in any case, with a core URN and without."""

    def __init__(self, names):
        super().__init__({self.key(*name): f'"{number}"' for number, name in enumerate(names)})

    def key(self, name, part, urn):
        urn = urn.lower() if urn and urn.lower() != CORE.lower() else None
        name = name.lower()
        # several values of an attribute are compared by this part of theirs
        part = part.lower() if part else "value" if name == "emails" else None
        return name, part, urn

    def get(self, path):
        return super().get(self.key(*path))


class Table:
    """The resources as rows, for filters that are SQL."""

    def __init__(self, resources):
        rows = [(one["id"], row) for one in resources for row in flat(one)]
        names = sorted({name for _, row in rows for name in row}, key=str)
        self.columns = Columns(names)
        self.connection = sqlite3.connect(":memory:")
        self.connection.execute("PRAGMA case_sensitive_like = ON")
        self.connection.execute(f"CREATE TABLE resource (key, {', '.join(map(self.columns.get, names))})")
        marks = ", ".join("?" for _ in range(len(names) + 1))
        for key, row in rows:
            values = [key, *(row.get(name) for name in names)]
            self.connection.execute(f"INSERT INTO resource VALUES ({marks})", values)

    def find(self, text):
        tree = SCIMParser().parse(SCIMLexer().tokenize(text))
        condition, values = Transpiler(self.columns).transpile(tree)
        condition = re.sub(r"\{(\w)\}", r":\1", condition)
        return {row[0] for row in self.connection.execute(f"SELECT key FROM resource WHERE {condition}", values)}


def flat(resource, urn=None):
    """The values of a resource by name, part and URN, once for each of several elements."""
    choices = []
    for name, value in resource.items():
        if name == ENTERPRISE:
            choices.append(flat(value, ENTERPRISE))
        else:
            choices.append([one_flat(name, one, urn) for one in (value if isinstance(value, list) else [value])])
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*choices)]


def one_flat(name, value, urn):
    if isinstance(value, dict):
        return {(name, part, urn): as_sql(inner) for part, inner in value.items()}
    return {(name, None, urn): as_sql(value)}


def as_sql(value):
    return str(value).upper() if isinstance(value, bool) else value
