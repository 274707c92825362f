//! Checks that the presenter of an access token is the one it is bound to: by a DPoP proof (RFC 9449,
//! section 7), or by the client certificate of the connection (RFC 8705, section 3).

use chancery_auth::{
    Claims, ClientCertificate, ErrorCode, NoncePolicy, ProofRequest, ReplayId, certificate_thumbprint,
    verify_proof,
};
use chancery_record::Timestamp;
use chancery_resource::{Problem, ProblemKind};
use http::request::Parts;

use crate::{
    app::{App, unauthorized},
    message::request::{Scheme, dpop_proofs},
};

/// The signature algorithms of DPoP proofs, for challenges.
const ALGORITHMS: &str = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA";

/// A token as it was presented.
pub struct PresentedToken<'a> {
    pub scheme: Scheme,
    pub token: &'a str,
    pub claims: &'a Claims,
    pub needs_nonce: bool,
}

/// The problem of a token that is invalid or not presented as its binding requires.
pub fn invalid(scheme: Scheme) -> Problem {
    let detail = "The access token is not valid here or has expired. Get a new one at /connect/token.";
    match scheme {
        Scheme::Bearer => unauthorized(detail, Some("invalid_token")),
        Scheme::Dpop => challenge(detail, "invalid_token"),
    }
}

/// The problem of a person whose authentication is too weak (RFC 9470, section 3).
pub fn too_weak(scheme: Scheme, acr: &str) -> Problem {
    let scheme = if scheme == Scheme::Dpop { "DPoP" } else { "Bearer" };
    let challenge = format!(
        "{scheme} realm=\"chancery\", error=\"insufficient_user_authentication\", acr_values=\"{acr}\""
    );
    let detail =
        "A stronger authentication is needed here. Sign in again with the acr_values of the challenge.";
    Problem::new(ProblemKind::Unauthorized, detail).with_header("www-authenticate", challenge)
}

fn challenge(detail: &str, error: &str) -> Problem {
    let challenge = format!("DPoP realm=\"chancery\", error=\"{error}\", algs=\"{ALGORITHMS}\"");
    Problem::new(ProblemKind::Unauthorized, detail).with_header("www-authenticate", challenge)
}

/// The problem of a proof that must contain this nonce.
pub fn nonce_required(nonce: &str) -> Problem {
    let detail = "The proof must hold the nonce of the DPoP-Nonce header.";
    challenge(detail, ErrorCode::UseDpopNonce.name()).with_header("dpop-nonce", nonce)
}

/// Checks a token's binding. Returns a nonce where its proof has none: one may be required later.
pub async fn check_token_binding(
    app: &App,
    parts: &Parts,
    presented: &PresentedToken<'_>,
    now: Timestamp,
) -> Result<Option<String>, Problem> {
    if let Some(expected) = presented.claims.x5t() {
        let shown = parts.extensions.get::<ClientCertificate>();
        let thumbprint = shown.and_then(|shown| certificate_thumbprint(&shown.der));
        if thumbprint.as_deref() != Some(expected) {
            return Err(invalid(presented.scheme));
        }
    }
    let Some(jkt) = presented.claims.jkt() else {
        // an unbound token cannot be presented as a DPoP token
        return if presented.scheme == Scheme::Bearer { Ok(None) } else { Err(invalid(presented.scheme)) };
    };
    if presented.scheme == Scheme::Bearer {
        let detail = "The access token is bound to a key: send it as Authorization: DPoP, with a proof.";
        return Err(challenge(detail, "invalid_token"));
    }
    let proofs = dpop_proofs(&parts.headers);
    let [proof] = proofs.as_slice() else {
        return Err(challenge("Send one DPoP proof.", "invalid_dpop_proof"));
    };
    let url = format!("{}{}", app.token_service.public_url, parts.uri.path());
    let nonces = &app.token_service.nonces;
    let request = ProofRequest {
        method: parts.method.as_str(),
        url: &url,
        access_token: Some(presented.token),
        nonce: if presented.needs_nonce {
            NoncePolicy::Required(nonces)
        } else {
            NoncePolicy::Optional(nonces)
        },
        now,
    };
    let proof = verify_proof(proof, &request).map_err(|refusal| {
        if refusal.code == ErrorCode::UseDpopNonce {
            nonce_required(&nonces.issue(now))
        } else {
            challenge(refusal.detail, refusal.code.name())
        }
    })?;
    if proof.jkt != jkt {
        return Err(challenge("The proof is of another key than the token's.", "invalid_token"));
    }
    let used = ReplayId::new("dpop", &proof.jkt, &proof.jti, proof.expires_on);
    if used.claim_alone(&app.store).await? {
        Ok(proof.nonce.is_none().then(|| nonces.issue(now)))
    } else {
        Err(challenge("The DPoP proof was used before.", "invalid_dpop_proof"))
    }
}
