// Smoke run of the TypeScript clients that openapi-generator makes.

import { isDeepStrictEqual } from 'node:util';
import * as management from './management/index.js';
import * as userstore from './userstore/index.js';

const base = process.env['CHANCERY_BASE'] ?? '';
// a server that is not new keeps what another run made
const run = Math.random().toString(16).slice(2, 10);
const css = btoa('body{margin:0}');
const pixel =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Says that something is as it should be, or ends the program. */
function same(what: string, is: unknown, shouldBe: unknown): void {
    if (!isDeepStrictEqual(is, shouldBe)) {
        console.log(`FAILED ${what}:`, is, 'is not', shouldBe);
        process.exit(1);
    }
    console.log(`ok ${what}`);
}

/** The documents name the token endpoint, and no generator makes a function of it. */
async function accessToken(client: string, secret: string): Promise<string> {
    const answer = await fetch(`${base}/connect/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${client}:${secret}`)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    return ((await answer.json()) as { access_token: string }).access_token;
}

// what this generator is given as a token it sends as it is: the scheme belongs to it
const token = `Bearer ${await accessToken('root', process.env['CHANCERY_ROOT_CLIENT_SECRET'] ?? '')}`;
const rest = new management.Configuration({ basePath: base, accessToken: token });
const customers = new management.CustomerApi(rest);
const apps = new management.ClientAppApi(rest);
const secrets = new management.ClientAppSecretApi(rest);
const rules = new management.ClaimRuleApi(rest);
const assets = new management.CustomAssetApi(rest);

// a customer with all below it
const customer = await customers.createCustomer({ customerCreate: { name: `Customer ${run}`, address: '1 Road' } });
same('create a customer', customer.address, '1 Road');
const subscription = await new management.SubscriptionApi(rest).createSubscription({
    subscriptionCreate: { name: `Subscription ${run}`, customerId: customer.id },
});
same('create a subscription', [subscription.customerId, subscription.status], [customer.id, 'Active']);
const tenant = await new management.TenantApi(rest).createTenant({
    tenantCreate: { name: `Tenant ${run}`, subscriptionId: subscription.id },
});
same('create a tenant', [tenant.subscriptionId, tenant.isActive], [subscription.id, true]);
const app = await apps.createClientApp({
    clientAppCreate: {
        name: `App ${run}`,
        subscriptionId: subscription.id,
        clientUri: 'https://app.example',
        allowClientCredentialLogin: true,
    },
});
const scope = await new management.ClientAppScopeApi(rest).createClientAppScope({
    clientAppScopeCreate: { key: 'orders', clientAppId: app.id },
});
same('create a client app with a scope', [scope.clientAppId, scope.name], [app.id, 'orders']);

// a secret is told once
const secret = await secrets.createClientAppSecret({ clientAppSecretCreate: { clientAppId: app.id } });
same('a secret is returned when it is created', secret.secret?.length, 43);
same('and never again', (await secrets.getClientAppSecret({ id: secret.id })).secret, null);
same('a client app gets a token with it', (await accessToken(app.id, secret.secret ?? '')).split('.').length, 3);

// a claim rule, and what it is related to
const rule = await rules.createClaimRule({
    claimRuleCreate: {
        name: `Rule ${run}`,
        ruleType: management.ClaimRuleCreateRuleTypeEnum.Filter,
        ruleLevel: management.ClaimRuleCreateRuleLevelEnum.ClientApp,
        subscriptionId: subscription.id,
        clientApps: [{ id: app.id }],
    },
});
const related = (rule: management.ClaimRule): string[] => rule.clientApps.map((one) => one.id);
const none = { id: rule.id, relatedIds: { relatedIds: [] } };
const both = { id: rule.id, relatedIds: { relatedIds: [app.id] } };
same('create a claim rule with clientApps', related(rule), [app.id]);
same('set a relation', related(await rules.setClaimRuleClientApps(none)), []);
same('add to a relation', related(await rules.addClaimRuleClientApps(both)), [app.id]);
same('read a relation', related(await rules.getClaimRule(rule)), [app.id]);
same('remove from a relation', related(await rules.removeClaimRuleClientApps(both)), []);

// an asset goes by its location
const location = `/assets/global/${run}.css`;
const asset = await assets.createCustomAsset({ customAssetCreate: { location, mimetype: 'text/css', data: css } });
same('upload an asset', [asset.size, asset.fileName], [14, `${run}.css`]);
same('read an asset by its location', (await assets.getCustomAsset({ id: location })).data, css);
await assets.deleteCustomAssetBatch({ requestBody: [location] });
same('delete a batch of assets', await assets.getCustomAssets({ filter: `location eq "${location}"` }), []);

// null in a PATCH wipes nothing
const members = Object.keys(management.ClientAppPatchToJSON({ concurrencyToken: '' } as management.ClientAppPatch));
const nulls = Object.fromEntries(members.map((member) => [member, null]));
const sent = { ...nulls, concurrencyToken: app.concurrencyToken } as management.ClientAppPatch;
const wire = Object.values(management.ClientAppPatchToJSON(sent) as object);
same('every member is sent as null', wire.filter((value) => value === null).length, members.length - 1);
const after = await apps.patchClientApp({ id: app.id, clientAppPatch: sent });
same('a PATCH of nulls answers what is there', after, await apps.getClientApp({ id: app.id }));
const { clientAppScopes, clientAppSecrets } = after;
const before = { ...app, concurrencyToken: after.concurrencyToken, clientAppScopes, clientAppSecrets };
same('and wipes nothing', after, before);

// a stale token
const { id, concurrencyToken } = customer;
const current = await customers.patchCustomer({ id, customerPatch: { name: `Renamed ${run}`, concurrencyToken } });
same('a PATCH of one member keeps the other', current.address, '1 Road');
const problem = await customers.patchCustomer({ id, customerPatch: { name: 'stale', concurrencyToken } }).then(
    () => undefined,
    async (error: unknown) =>
        error instanceof management.ResponseError ? management.ProblemFromJSON(await error.response.json()) : undefined,
);
same('a stale token is a problem', [problem?.status, problem?.type], [409, '/problems/concurrency-conflict']);
same('that tells the current one', problem?.currentConcurrencyToken, current.concurrencyToken);

// many at once, and lists
const names = [0, 1, 2].map((place) => `Batch ${run} ${place}`);
const batch = await customers.createCustomerBatch({ customerCreate: names.map((name) => ({ name })) });
same('create a batch', batch.map((one) => one.name), names);
const about = { filter: `name sw "Batch ${run}"`, sortBy: management.GetCustomersSortByEnum.Name };
const page = await customers.getCustomersRaw({ ...about, count: 2, includeTotal: true });
same('a page of a filtered list', (await page.value()).map((one) => one.name), names.slice(0, 2));
same('tells the number of all', page.raw.headers.get('x-total-count'), '3');
const link = /^<([^>]*)>; rel="next"$/.exec(page.raw.headers.get('link') ?? '')?.[1] ?? '';
const cursor = new URL(link, base).searchParams.get('cursor') ?? '';
const restOfIt = await customers.getCustomers({ ...about, count: 2, cursor });
same('its Link leads to the next', restOfIt.map((one) => one.name), names.slice(2));
await customers.deleteCustomerBatch({ requestBody: batch.map((one) => one.id) });
same('delete a batch', await customers.getCustomers(about), []);

// the user store
const store = new userstore.Configuration({ basePath: base, accessToken: token });
const [here, users] = [{ userstore: 'default' }, new userstore.UserApi(store)];
const user = await users.createUser({ ...here, userCreate: { loginName: `typescript-${run}`, firstName: 'Ada' } });
const group = await new userstore.GroupApi(store).createGroup({ ...here, groupCreate: { name: `TypeScript ${run}` } });
const into = { ...here, userId: user.id, relatedIds: { relatedIds: [group.id] } };
const joined = await users.setUserMemberOfGroups(into);
same('a user joins a group', joined.memberOfGroups.map((one) => one.name), [group.name]);
const setUserImageRequest = { contentType: 'image/png', data: pixel };
const image = await new userstore.UserImageApi(store).setUserImage({ ...here, userId: user.id, setUserImageRequest });
same('and gets an image', image.userId, user.id);
await users.deleteBatch({ ...here, requestBody: [user.id] });
same('users are deleted', await users.getUsers({ ...here, filter: `id eq "${user.id}"` }), []);
