// The people of the providers.

const person = (sub, firstName, lastName) => ({ sub, firstName, lastName, name: `${firstName} ${lastName}`, email: `${sub}@provider.example` })

export const ada = person('ada', 'Ada', 'Lovelace')
export const alan = person('alan', 'Alan', 'Turing')

/** The groups of each person in claims. */
export const GROUPS = ['staff', 'analysts']

/** One of many. */
export const guest = (number) => person(`guest-${number}`, 'Guest', `Number ${number}`)

/** The claims about a person besides `sub`. */
export const claimsOf = ({ firstName, lastName, name, email }) => ({
  given_name: firstName, family_name: lastName, name, email, email_verified: true, groups: GROUPS,
})
