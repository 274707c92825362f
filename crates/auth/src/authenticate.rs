//! Client authentication (RFC 6749, section 2.3), by the one method that is configured for the client app.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use aws_lc_rs::{
    encoding::{AsDer as _, PublicKeyX509Der},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING,
        EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
    },
};
use chancery_certificate::{facts_of, matches_subject, names_of};
use chancery_oauth::{
    Algorithm, AssertionKeys, Expected, Jwk, JwkSet, LEEWAY, MAX_LIFETIME, PublicKey, VerifiedAssertion,
    check_claims, verify_assertion,
};
use chancery_record::{Secret, Timestamp};
use chancery_store::Store;
use tokio::time::timeout;
use uuid::Uuid;

use crate::{
    ClientCertificate, OAuthError, TokenService,
    client::{ClientApp, ClientQuery, KeySet, Method, StoredSecret, find, refresh},
    error::INVALID_CLIENT,
    presented::{EndpointRequest, PresentedCredential, Proof},
    replay::ReplayId,
};

/// The detail with which [`verify_assertion`] rejects a signature, after all checks before it passed.
const REACHED_THE_SIGNATURE: &str = "The signature is not the client's.";
/// The endpoint whose address an assertion's `aud` may name wherever it is shown.
const TOKEN_ENDPOINT: &str = "/connect/token";

/// How long fetching keys may take while one client is authenticated.
const FETCHING_TIME: Duration = Duration::from_secs(10);

/// A client that authenticated, or that is public and cannot.
pub struct AuthenticatedClient {
    /// The client app.
    pub app: ClientApp,
    /// The id of the client's assertion, which can be used once, and is not claimed yet.
    pub used: Option<ReplayId>,
    /// The security epoch read before the client app was: what was read is no older.
    pub epoch: i64,
}

/// Authenticates the client app of a request; returns it with those of the resources and, if requested, the
/// scopes that it may get. The work is the same whether the client app exists or not, except for keys that
/// must be fetched: `FETCHING_TIME` bounds that, however many there are.
///
/// # Errors
/// [`INVALID_CLIENT`] whatever the reason; a malformed request; errors of the store.
pub async fn authenticate(
    store: &Store,
    token_service: &TokenService,
    request: &EndpointRequest,
    resources: Vec<String>,
    scopes: bool,
) -> Result<AuthenticatedClient, OAuthError> {
    let presented = request.presented()?;
    let now = request.now;
    let query = ClientQuery { tenant: request.issuer.tenant_id(), resources, scopes };
    let digest = secret_digest(token_service, &presented.proof);
    if let Some((cached, epoch)) = cached_by_secret(token_service, request, &presented, digest.as_ref())
        && let Some(app) = refresh(store, cached.as_ref(), epoch, query.clone()).await?
    {
        record_use(token_service, &app, now);
        return Ok(AuthenticatedClient { app, used: None, epoch });
    }
    let PresentedCredential { client, proof } = presented;
    let tenant = query.tenant;
    let (app, epoch) = find(store, &client, query, now).await?;
    let method = app.as_ref().map(|app| app.configuration.method);
    let (mut used, mut credential_used) = (None, None);
    let is_proven = match (&proof, &digest) {
        (Proof::Basic(_) | Proof::Post(_), Some(digest)) => has_secret(app.as_ref(), &proof, digest, now),
        (Proof::Assertion(assertion), _) => {
            let verified = check_assertion(token_service, app.as_ref(), assertion, &client, request);
            let verified = timeout(FETCHING_TIME, verified).await.ok().flatten();
            if let (Some(app), Some(verified)) = (&app, &verified) {
                let owner = app.id.to_string();
                let (assertion, credential) = verified;
                used = Some(ReplayId::new("assertion", &owner, &assertion.jti, assertion.expires_on));
                credential_used = *credential;
            }
            verified.is_some()
        }
        _ => match (&app, method, &request.certificate) {
            (Some(app), Some(Method::Tls), Some(certificate)) => has_name(app, certificate, now),
            (Some(app), Some(Method::SelfSignedTls), Some(certificate)) => {
                let credential =
                    timeout(FETCHING_TIME, has_certificate(token_service, app, certificate, now));
                credential_used = credential.await.ok().flatten();
                credential_used.is_some()
            }
            // each endpoint decides what a public client may do there
            (Some(app), Some(Method::None | Method::Either), _) => app.is_public,
            _ => false,
        },
    };
    match app {
        Some(app) if is_proven & app.enabled => {
            if let Some(digest) = &digest {
                let secret = app.secrets.iter().find(|stored| digest.matches(&stored.digest));
                credential_used = secret.map(|stored| stored.id);
                token_service.authenticated_clients.insert(&client, digest, tenant, &app, epoch);
            }
            if let Some(credential) = credential_used {
                token_service.uses.record(app.id, credential, now);
            }
            Ok(AuthenticatedClient { app, used, epoch })
        }
        _ => Err(INVALID_CLIENT),
    }
}

/// The client app whose secret a request presents, if it authenticated by that secret before, with the epoch that was read
/// before it. It is current only while that is the epoch.
///
/// # Errors
/// A malformed request.
pub fn cached_client(
    token_service: &TokenService,
    request: &EndpointRequest,
) -> Result<Option<(Arc<ClientApp>, i64)>, OAuthError> {
    let presented = request.presented()?;
    let digest = secret_digest(token_service, &presented.proof);
    Ok(cached_by_secret(token_service, request, &presented, digest.as_ref()))
}

/// Records the use of the secret by which a cached client app authenticated.
pub fn record_use(token_service: &TokenService, app: &ClientApp, now: Timestamp) {
    if let Some(secret) = app.secrets.first() {
        token_service.uses.record(app.id, secret.id, now);
    }
}

fn secret_digest(token_service: &TokenService, proof: &Proof) -> Option<Secret> {
    match proof {
        Proof::Basic(secret) | Proof::Post(secret) => {
            Some(Secret::new(token_service.master.secret_digest(secret.expose())))
        }
        _ => None,
    }
}

fn cached_by_secret(
    token_service: &TokenService,
    request: &EndpointRequest,
    presented: &PresentedCredential,
    digest: Option<&Secret>,
) -> Option<(Arc<ClientApp>, i64)> {
    let (tenant, now) = (request.issuer.tenant_id(), request.now);
    let (cached, epoch) = token_service.authenticated_clients.get(&presented.client, digest?, tenant)?;
    if !has_secret(Some(cached.as_ref()), &presented.proof, digest?, now) {
        return None;
    }
    Some((cached, epoch))
}

/// Whether a secret is one of the client app's, and was presented by the configured method.
fn has_secret(app: Option<&ClientApp>, proof: &Proof, digest: &Secret, now: Timestamp) -> bool {
    let Some(app) = app else { return false };
    let matches =
        |matched, stored: &StoredSecret| matched | (digest.matches(&stored.digest) & stored.is_current(now));
    let is_proven = app.secrets.iter().fold(false, matches);
    let by_method = match app.configuration.method {
        Method::Either => true,
        Method::Basic => matches!(proof, Proof::Basic(_)),
        Method::Post => matches!(proof, Proof::Post(_)),
        _ => false,
    };
    is_proven & by_method && !app.is_public
}

/// Checks an assertion for the issuer, its token endpoint, or the endpoint of the request. Returns it with the secret or
/// key set that it was signed by, if known.
async fn check_assertion(
    token_service: &TokenService,
    app: Option<&ClientApp>,
    assertion: &str,
    client: &str,
    request: &EndpointRequest,
) -> Option<(VerifiedAssertion, Option<Uuid>)> {
    let (issuer, now) = (&request.issuer, request.now);
    let [token_endpoint, own] = [TOKEN_ENDPOINT, request.path].map(|path| issuer.endpoint(path));
    let audiences = [issuer.url.as_str(), &token_endpoint, &own];
    let of_any_client = Expected {
        client_ids: &[client],
        audiences: &audiences,
        one_audience: false,
        now,
        max_lifetime: MAX_LIFETIME,
        leeway: LEEWAY,
    };
    // an assertion that has expired or is for another server must not make this one fetch keys
    check_claims(assertion, &of_any_client).ok()?;
    // FAPI 2.0 Security Profile, section 5.3.2.1: the issuer alone, and as a text
    let is_fapi2 = app.is_some_and(|app| app.is_fapi2);
    let audiences = if is_fapi2 { &audiences[..1] } else { &audiences[..] };
    let expected = Expected { one_audience: is_fapi2, audiences, ..of_any_client };
    let mut reached_the_signature = false;
    if let Some(app) = app.filter(|app| !app.is_public) {
        match app.configuration.method {
            Method::SecretJwt => {
                let current = app.secrets.iter().filter(|secret| secret.is_current(now));
                let (ids, secrets): (Vec<Uuid>, Vec<Secret>) = current
                    .filter_map(|stored| Some((stored.id, stored.decrypted(&token_service.master)?)))
                    .unzip();
                match verify_assertion(assertion, AssertionKeys::Secrets(&secrets), &expected) {
                    Ok(verified) => {
                        let is_signed_by = |secret: &Secret| {
                            verify_assertion(
                                assertion,
                                AssertionKeys::Secrets(std::slice::from_ref(secret)),
                                &expected,
                            )
                            .is_ok()
                        };
                        let at = secrets.iter().position(is_signed_by);
                        return Some((verified, at.and_then(|at| ids.get(at).copied())));
                    }
                    Err(refusal) => reached_the_signature = refusal.detail == REACHED_THE_SIGNATURE,
                }
            }
            Method::PrivateKeyJwt => {
                for set in &app.key_sets {
                    for refetch in [false, true] {
                        let Some(keys) = keys_of(token_service, app, set, refetch, now).await else {
                            break;
                        };
                        match verify_assertion(assertion, AssertionKeys::Public(&keys), &expected) {
                            Ok(verified) if allows_algorithm(app, set, verified.algorithm) => {
                                return Some((verified, Some(set.id)));
                            }
                            Ok(_) => reached_the_signature = true,
                            Err(refusal) => reached_the_signature |= refusal.detail == REACHED_THE_SIGNATURE,
                        }
                    }
                }
            }
            _ => {}
        }
    }
    if !reached_the_signature {
        // verified with decoy keys: the time taken must not reveal which client apps exist
        let _ = verify_assertion(assertion, AssertionKeys::Public(&DECOY_KEYS), &of_any_client);
        let _ = verify_assertion(assertion, AssertionKeys::Secrets(&[Secret::new([0; 32])]), &of_any_client);
    }
    None
}

/// Whether the key set allows this algorithm, and so does the client app's profile: FAPI 1.0 Advanced, section 8.6, or
/// FAPI 2.0 Security Profile, section 5.4.1.
fn allows_algorithm(app: &ClientApp, set: &KeySet, algorithm: Algorithm) -> bool {
    let by_profile = match algorithm {
        Algorithm::Ps256 | Algorithm::Es256 => true,
        Algorithm::EdDsa => !app.is_fapi || app.is_fapi2,
        _ => !app.is_fapi,
    };
    by_profile && set.algorithm.as_deref().is_none_or(|only| Algorithm::named(only) == Some(algorithm))
}

/// The keys of a set; with `refetch` only keys that may have changed, fetched anew. `None`: there are none.
async fn keys_of(
    token_service: &TokenService,
    app: &ClientApp,
    set: &KeySet,
    refetch: bool,
    now: Timestamp,
) -> Option<Vec<Jwk>> {
    let mut keys = match (&set.jwks, &set.jwks_uri, &set.certificate) {
        (Some(jwks), ..) if !refetch => JwkSet::parse(jwks.as_bytes()).ok()?.keys,
        (None, Some(url), _) => token_service.remote.at(app.subscription, url, refetch, now).await.to_vec(),
        (None, None, Some(der)) if !refetch => {
            let facts = facts_of(der).ok().filter(|facts| facts.valid_from <= now && now < facts.valid_to)?;
            let key = PublicKey::from_spki(&facts.subject_public_key_info).ok()?;
            let mut jwk = Jwk::of(key);
            jwk.kid.clone_from(&set.kid);
            return Some(vec![jwk]);
        }
        _ => return None,
    };
    if let Some(kid) = &set.kid {
        keys.retain(|key| key.kid.as_ref() == Some(kid));
    }
    Some(keys)
}

/// `tls_client_auth` (RFC 8705, section 2.1): a certificate of a trusted authority, with the configured name.
fn has_name(app: &ClientApp, certificate: &ClientCertificate, now: Timestamp) -> bool {
    let is_current =
        facts_of(&certificate.der).is_ok_and(|facts| facts.valid_from <= now && now < facts.valid_to);
    let Ok(names) = names_of(&certificate.der) else { return false };
    let matches = match &app.configuration.names {
        [Some(subject), None, None, None, None] => {
            matches_subject(subject, &certificate.der).unwrap_or_default()
        }
        [None, Some(dns), None, None, None] => names.has_dns(dns),
        [None, None, Some(uri), None, None] => names.has_uri(uri),
        [None, None, None, Some(ip), None] => names.has_ip(ip),
        [None, None, None, None, Some(email)] => names.has_email(email),
        _ => false,
    };
    certificate.is_trusted && is_current && matches
}

/// `self_signed_tls_client_auth` (RFC 8705, section 2.2): a certificate, or a key, of the client app's key sets; returns
/// the key set.
async fn has_certificate(
    token_service: &TokenService,
    app: &ClientApp,
    certificate: &ClientCertificate,
    now: Timestamp,
) -> Option<Uuid> {
    let facts = facts_of(&certificate.der).ok()?;
    let key = PublicKey::from_spki(&facts.subject_public_key_info).ok();
    for set in &app.key_sets {
        if let Some(own) = &set.certificate {
            if *own == certificate.der && facts.valid_from <= now && now < facts.valid_to {
                return Some(set.id);
            }
            continue;
        }
        for refetch in [false, true] {
            let Some(keys) = keys_of(token_service, app, set, refetch, now).await else { break };
            if keys.iter().any(|jwk| Some(&jwk.key) == key.as_ref()) {
                return Some(set.id);
            }
        }
    }
    None
}

/// Public keys of each kind whose private keys do not exist.
static DECOY_KEYS: LazyLock<Vec<Jwk>> = LazyLock::new(|| {
    // verifying accepts any odd number of 2048 bits as a modulus
    let modulus = (0_u8..=255).map(|at| at | 0x81).collect::<Vec<u8>>();
    let modulus = base64::Engine::encode(&base64::prelude::BASE64_URL_SAFE_NO_PAD, modulus);
    let rsa = format!(r#"{{"kty":"RSA","n":"{modulus}","e":"AQAB"}}"#);
    let mut keys: Vec<Jwk> = Jwk::parse(rsa.as_bytes()).into_iter().collect();
    let mut add = |der: Option<PublicKeyX509Der<'_>>| {
        keys.extend(der.and_then(|der| PublicKey::from_spki(der.as_ref()).ok()).map(Jwk::of));
    };
    for curve in
        [&ECDSA_P256_SHA256_FIXED_SIGNING, &ECDSA_P384_SHA384_FIXED_SIGNING, &ECDSA_P521_SHA512_FIXED_SIGNING]
    {
        add(EcdsaKeyPair::generate(curve).ok().and_then(|pair| pair.public_key().as_der().ok()));
    }
    add(Ed25519KeyPair::generate().ok().and_then(|pair| pair.public_key().as_der().ok()));
    keys
});

#[cfg(test)]
mod tests {
    use super::DECOY_KEYS;

    #[test]
    fn decoy_keys_are_of_each_kind() {
        assert_eq!(DECOY_KEYS.len(), 5);
    }
}
