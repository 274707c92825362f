"""What the server reads otherwise than the standard has it, as changes of the question.

differences.json says which of them there are, and why. A question that is changed so has the server's answer.
"""


def mapped(names, schemas, resources, filters):
    """Of these attributes one element is looked for, the one that is the home's field; it is for work, and primary."""
    return schemas, [one | {name: [the_one(one[name])] for name in names if name in one} for one in resources], filters


def the_one(elements):
    for fits in ({"primary": True}, {"type": "work"}, {}):
        for one in elements:
            if fits.items() <= one.items():
                return {"value": one["value"], "type": "work", "primary": True}
    raise ValueError(elements)


READINGS = {"mapped": mapped}


def read(listed, question):
    """The question (schemas, resources, filters) as these readings have it."""
    for one in listed:
        question = READINGS[one["reading"]](one["attributes"], *question)
    return question
