// Authenticators of Chromium's, plugged into a page.

/** Lets a page have authenticators; answers how one is plugged in. */
export async function allowAuthenticators(page) {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable', { enableUI: false })
  /** Plugs an authenticator in; answers how to use it by hand. */
  return async function plugIn(more = {}) {
    const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2', ctap2Version: 'ctap2_1', transport: 'internal', hasResidentKey: true,
        hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true, ...more,
      },
    })
    return {
      credentials: async () => (await devtools.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
      put: (credential) => devtools.send('WebAuthn.addCredential', { authenticatorId, credential }),
      unplug: () => devtools.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId }),
      /** Says whether it finds the person to be who they are. */
      verifies: (isUserVerified) => devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
      /** Says whether somebody touches it when it asks for that. */
      isTouched: (enabled) => devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled }),
    }
  }
}
