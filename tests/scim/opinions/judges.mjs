// The libraries of judges.py that are JavaScript: reads questions, and writes what each library answers.
import { readFileSync } from "node:fs";
import { scimPatch } from "scim-patch";
import { filter, parse } from "scim2-parse-filter";
import SCIMMY from "scimmy";

const CORE = "urn:ietf:params:scim:schemas:core:2.0:User";
const { User, Group, EnterpriseUser } = SCIMMY.Schemas;
User.extend(EnterpriseUser);
// the types of elements are any here
for (const name of ["emails", "phoneNumbers", "ims", "addresses", "roles", "entitlements"]) {
    User.definition.attribute(`${name}.type`).config.canonicalValues = false;
}
const questions = JSON.parse(readFileSync(0, "utf8"));

/** The answer, or how the library fails. */
async function asked(question) {
    try {
        return { is: await question() };
    } catch (error) {
        return { fails: `${error?.name}: ${error?.message}` };
    }
}

// one reads a name behind its URN as a part of it, the other as one long name
const parted = (resource) => ({ ...resource, [CORE]: resource });
const long = (resource) => {
    const behind = (urn, own) => Object.entries(own).map(([name, value]) => [`${urn}:${name}`, value]);
    return Object.fromEntries(
        Object.entries(resource).flatMap(([name, value]) =>
            name.startsWith("urn:") ? behind(name, value) : [[name, value], [`${CORE}:${name}`, value]],
        ),
    );
};
const ids = (found) => found.map((one) => one.id);

function finding(resources) {
    const [partedOnes, longOnes] = [resources.map(parted), resources.map(long)];
    return async (text) => ({
        "scim2-parse-filter": await asked(() => ids(partedOnes.filter(filter(parse(text))))),
        scimmy: await asked(() => ids(new SCIMMY.Types.Filter(text).match(longOnes))),
    });
}

async function patched([resource, operations]) {
    if (!operations.length) return { "scim-patch": { is: resource }, scimmy: { is: resource } };
    const copy = () => structuredClone(resource);
    const schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"];
    const Schema = resource.schemas.includes(CORE) ? User : Group;
    return {
        "scim-patch": await asked(() => scimPatch(copy(), structuredClone(operations))),
        scimmy: await asked(async () => {
            const before = new Schema(copy());
            const op = new SCIMMY.Messages.PatchOp({ schemas, Operations: structuredClone(operations) });
            return JSON.parse(JSON.stringify((await op.apply(before)) ?? before));
        }),
    };
}

const answers = [];
const answer = "find" in questions ? finding(questions.resources) : patched;
for (const one of questions.find ?? questions.patch) answers.push(await answer(one));
process.stdout.write(JSON.stringify(answers));
