// Records that only links of other pages lead to, or that no part before made: what somebody may do, a replacement of an
// identity, a recovery, and a user who is not active.

import { administration, call } from '../api.mjs'

const management = '/api/management/v2'
const first = async (path, condition) => {
  const filter = condition === undefined ? '' : `?filter=${encodeURIComponent(condition)}`
  return (await call('GET', `${management}/${path}${filter}`, undefined, 200))[0]
}

/** Makes them; their pages. */
export async function records() {
  await call('POST', `${administration}/User/synchronize`, null, 200)
  const person = await first('ApplicationUser', 'emailAddress eq "grace@example.com" or emailAddress eq "ada@example.com"')
  const { id: idpTypeId } = await first('IdpType', 'name eq "OpenIdConnect"'), { id: subscriptionId } = await first('Subscription')
  const instance = await call('POST', `${management}/IdpInstance`, { name: 'Work', idpTypeId, subscriptionId }, 201)
  const replacement = await call('POST', `${management}/identity-replacements`, {
    platformUserId: person.id, replacementIdpInstanceId: instance.id, replacementUniqueUserId: 'ada-at-work', reason: 'Lost her telephone',
  }, 201)
  const subscription = await call('POST', `${administration}/EventSubscription`, { name: 'Warehouse', url: 'https://receiver.example.com/events', types: ['platform.userstore.user.*'] }, 201)
  await call('POST', `${administration}/EventSubscription/${subscription.id}/test`, {}, 200)
  const inactive = await call('POST', `${administration}/User`, { loginName: 'inactive', isUserActive: false }, 201)
  await call('POST', `${administration}/passkey-security/recovery-transactions`, { userId: inactive.id, method: 'IdentityDocument', reason: 'Lost his key' }, 201)
  const deliveries = `/console/store/default/EventSubscription/${subscription.id}`
  const administrator = await first('RoleAssignment', 'roleType eq "SystemAdmin"')
  return [deliveries, `${deliveries}/deliveries`, `/console/ApplicationUser/${person.id}`, `/console/ApplicationUser/${administrator.principalId}/rights`,
    `/console/IdentityReplacement/${replacement.id}`, `/console/RoleAssignment/new?principalId=${person.id}`]
}
