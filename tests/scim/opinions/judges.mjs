// The libraries of judges.py that are JavaScript: reads questions, and writes what each library answers.
import { readFileSync } from "node:fs";
import { filter, parse } from "scim2-parse-filter";
import SCIMMY from "scimmy";

const CORE = "urn:ietf:params:scim:schemas:core:2.0:User";
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

const answers = [];
const answer = finding(questions.resources);
for (const one of questions.find) answers.push(await answer(one));
process.stdout.write(JSON.stringify(answers));
