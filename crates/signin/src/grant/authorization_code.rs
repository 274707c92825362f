//! Authorization codes: issued when a sign-in completes, valid once.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_application::{SignOutScope, sign_out};
use chancery_flow::SignedIn;
use chancery_oauth::{AuthorizationRequest, OPENID, SecurityProfile};
use chancery_record::{Timestamp, Value};
use chancery_resource::settings::TenantOption;
use chancery_resource::{Context, MasterKey, Problem, StateTable, StoreError, Tx, random};
use chancery_store::selectable;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{claims_request::RequestedClaims, granted::Granted};
use crate::{client_app::Application, session};

/// How often a code may be presented with wrong parameters.
const MISSES: i64 = 5;
/// The maximum lifetime of a code under a FAPI profile, in ms.
const UNDER_PROFILE: i64 = 60_000;

/// The contents of a code.
#[derive(Clone, Serialize, Deserialize)]
pub struct CodeContents {
    /// The grant.
    pub granted: Granted,
    /// `nonce`
    pub nonce: Option<String>,
    /// `redirect_uri`
    pub redirect_uri: String,
    /// The PKCE challenge.
    pub challenge: Option<String>,
    /// The thumbprint of the key that the code is bound to.
    pub dpop_jkt: Option<String>,
}

/// The digest under which a code is stored.
fn digest(master: &MasterKey, code: &str) -> Vec<u8> {
    master.digest("authorization-code", code.as_bytes())
}

fn associated_data(digest: &[u8]) -> String {
    format!("authorization_code/{}", BASE64_URL_SAFE_NO_PAD.encode(digest))
}

/// The granted part of a request: the scope and the claims requested by name.
pub fn granted_of(
    application: &Application,
    request: &AuthorizationRequest,
    is_granted: impl Fn(&str) -> bool,
) -> (String, RequestedClaims) {
    let scope = application.grantable(request.scope.as_ref()).unwrap_or_default();
    let requested = if scope.has(OPENID) {
        RequestedClaims::of(application, &request.claims, &scope).within(&is_granted)
    } else {
        RequestedClaims::default()
    };
    (scope.filter(is_granted).to_string(), requested)
}

/// An authorization request of a client app.
#[derive(Clone, Copy)]
pub struct CodeRequest<'a> {
    /// The client app.
    pub application: &'a Application,
    /// The tenant whose issuer got the request; `None`: the installation.
    pub issuing: Option<Uuid>,
    /// The request.
    pub request: &'a AuthorizationRequest,
}

/// Issues the code of an authorization request for a complete sign-in.
pub fn issue(
    context: &Context,
    tx: &mut Tx<'_>,
    code_request: CodeRequest<'_>,
    signed_in: &SignedIn,
    session: Uuid,
) -> Result<Option<String>, Problem> {
    let CodeRequest { application, issuing, request } = code_request;
    if !request.response_type.code {
        return Ok(None);
    }
    // with consent a person may have granted only a part
    let is_granted =
        |word: &str| signed_in.granted.as_ref().is_none_or(|granted| granted.words.contains(word));
    let (scope, requested) = granted_of(application, request, is_granted);
    let tenant = application.tenant(signed_in.tenant);
    let granted = Granted {
        person: signed_in.person,
        tenant: signed_in.tenant,
        issuing,
        instance: signed_in.instance,
        session: Some(session),
        auth_time: signed_in.auth_time.0.div_euclid(1000),
        proven_at: Some(signed_in.proven_at.0),
        acr: signed_in.acr.name().to_owned(),
        amr: signed_in.amr.iter().map(|word| (*word).to_owned()).collect(),
        scope,
        resources: request.resources.clone(),
        cnf: None,
        requested,
        provider_claims: session::claims_of_sign_in(
            tx,
            &context.app.master,
            application,
            Some(session),
            signed_in,
        )?,
    };
    let contents = CodeContents {
        granted,
        nonce: request.nonce.clone(),
        redirect_uri: request.redirect_uri.clone(),
        challenge: request.challenge.as_ref().map(ToString::to_string),
        dpop_jkt: request.dpop_jkt.clone(),
    };
    let text = serde_json::to_vec(&contents)
        .map_err(|_| StoreError::Internal("a code's contents cannot be written".into()))?;
    let master = &context.app.master;
    let code = BASE64_URL_SAFE_NO_PAD.encode(random::<32>());
    let digest = digest(master, &code);
    let lifetime =
        tenant.map_or(UNDER_PROFILE, |tenant| tenant.options.get(TenantOption::AUTHORIZATION_CODE_LIFETIME));
    let lifetime = if application.security_profile == SecurityProfile::None {
        lifetime
    } else {
        lifetime.min(UNDER_PROFILE)
    };
    let sealed = master.seal(&associated_data(&digest), &text);
    let text = StateTable::AuthorizationCode.insert(
        "(digest, client_app_id, grant_id, sealed, misses, expires_on) VALUES (?1, ?2, ?3, ?4, 0, ?5)",
    );
    let until = context.now.plus(lifetime);
    let grant = context.new_id();
    let parameters =
        vec![digest.into(), application.id.into(), grant.into(), sealed.into(), Value::Int(until.0)];
    tx.queue(&text, parameters)?;
    Ok(Some(code))
}

selectable! {
    /// A code as it is stored.
    struct CodeRow from "FROM authorization_code \
        WHERE digest = ?1 AND misses < ?2 AND (used_on IS NOT NULL OR expires_on > ?3)" {
        application: Uuid = "client_app_id",
        grant: Uuid = "grant_id",
        sealed: Vec<u8> = "sealed",
        used_on: Option<Timestamp> = "used_on",
    }
}

/// A stored code.
pub struct StoredCode {
    digest: Vec<u8>,
    /// The grant that it creates.
    pub grant: Uuid,
    /// The client app that it was issued to.
    pub application: Uuid,
    /// Its contents.
    pub contents: CodeContents,
    used_on: Option<Timestamp>,
}

/// Finds a code that has not expired.
pub fn find(
    tx: &mut Tx<'_>,
    master: &MasterKey,
    code: &str,
    now: Timestamp,
) -> Result<Option<StoredCode>, StoreError> {
    let digest = digest(master, code);
    let key = [digest.clone().into(), MISSES.into(), now.0.into()];
    let row = tx.one(CodeRow::SELECT, &key, CodeRow::read)?;
    let Some(CodeRow { application, grant, sealed, used_on }) = row else { return Ok(None) };
    let opened = master.open(&associated_data(&digest), &sealed);
    let contents = opened.and_then(|text| serde_json::from_slice(text.expose()).ok());
    let contents = contents.ok_or_else(|| StoreError::Internal("a code's contents cannot be read".into()))?;
    Ok(Some(StoredCode { digest, grant, application, contents, used_on }))
}

impl StoredCode {
    /// Whether the code was used before.
    pub const fn is_used(&self) -> bool {
        self.used_on.is_some()
    }

    /// Marks the code as used. `false`: it was used before, so its grant has ended (RFC 6749, section 4.1.2).
    pub fn claim(&self, context: &Context, tx: &mut Tx<'_>) -> Result<bool, Problem> {
        if self.used_on.is_none() {
            let text = StateTable::AuthorizationCode
                .update("SET used_on = ?2 WHERE digest = ?1 AND used_on IS NULL");
            // if another request has used the code meanwhile, the transaction runs again and finds it used
            tx.queue_one(&text, vec![self.digest.clone().into(), context.now.0.into()])?;
            return Ok(true);
        }
        sign_out(context, tx, SignOutScope::Grant(self.grant))?;
        Ok(false)
    }

    /// Counts a presentation with wrong parameters.
    pub fn miss(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let text = StateTable::AuthorizationCode.update("SET misses = misses + 1 WHERE digest = ?1");
        tx.queue(&text, vec![self.digest.clone().into()])
    }
}
