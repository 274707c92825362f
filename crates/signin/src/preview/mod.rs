//! Token preview: the claims in a person's tokens for a client app. Requests, admission and claims are evaluated by
//! the code that issues tokens; nothing is issued, signed or written.

mod document;

use chancery_application::APPLICATION_USER;
use chancery_auth::may_read_people;
use chancery_flow::{Consent, NotAdmitted};
use chancery_management::{
    client_app::{CLIENT_APP, token_preview::TokenPreview},
    idp_instance::IDP_INSTANCE,
    tenant::TENANT,
};
use chancery_oauth::{
    CheckedRequest, ErrorCode, ProtocolError, ResponseTarget, Use, check_use, maximum_scope,
};
use chancery_record::{Field, Value};
use chancery_resource::{
    Answer, Authority, CONSOLE, Call, Context, Problem, ProblemKind, Purpose, Shape, StoreError, Tx, Work,
    find_row, read_form, visible,
};
use serde_json::Value as Json;
use uuid::Uuid;

use self::document::{PreviewInput, SignInTarget, refused};
use crate::{
    claims::Preview,
    client_app::{
        Application, NOT_SERVING,
        audience::{as_registered, audience},
        console_path::CONSOLE_RETURN,
        load, with_facts,
    },
    endpoints::{authorize::validate_request, flow_request::requested_access},
    grant::{authorization_code::granted_of, granted::Granted},
    person::{self, IdentityKey, consent::consent_of},
    session,
    tokens::Lifetimes,
};

/// A PKCE challenge, so that the validated request is complete.
const CHALLENGE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Runs the operation `PreviewTokens`: reads and validates in the transaction, and evaluates claims on the worker
/// pool.
///
/// # Errors
/// Fails when the caller may not read the client app or the person, or when the database fails.
pub fn preview_tokens(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let body = match call.result::<Json>() {
        Some(body) => body.to_string(),
        None => match prepare(call, tx)? {
            Ok(input) => return Ok(Answer::after(Work::new(Purpose::Pattern, move || input.render()))),
            Err(refused) => refused.to_string(),
        },
    };
    call.answer.bytes.extend_from_slice(body.as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// Reads the input of the tokens. The inner error is the response that explains why there are none.
fn prepare(call: &Call, tx: &mut Tx<'_>) -> Result<Result<PreviewInput, Json>, Problem> {
    let context = &call.context;
    let (_, id) = find_row(context, tx, &CLIENT_APP, call.request.parameter(0))?;
    let form: TokenPreview = read_form(call)?;
    check_named(context, tx, &form)?;
    let Value::Id(id) = id else { return Err(Problem::not_found(CLIENT_APP.name)) };
    let Some(application) = load(tx, id)?.filter(|application| application.enabled) else {
        let refusal = ProtocolError::new(ErrorCode::UnauthorizedClient, NOT_SERVING);
        return Ok(Err(refused(SignInTarget::default(), refusal)));
    };
    let target = find_target(tx, &application, &form)?;
    // the following reads data of the person there
    if let Some(instance) = target.instance {
        check_may_read(context, tx, instance)?;
    }
    Ok(read(context, tx, &application, target, &form)?.map_err(|refusal| refused(target, refusal)))
}

fn read(
    context: &Context,
    tx: &mut Tx<'_>,
    application: &Application,
    target: SignInTarget,
    form: &TokenPreview,
) -> Result<Result<PreviewInput, ProtocolError>, Problem> {
    let person = form.platform_user_id.0;
    let checked = match check_request(context, tx, application, form)? {
        Ok(checked) => checked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let aud = match audience(tx, application, &checked.request.resources)? {
        Ok(aud) => aud,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (Some(tenant), Some(instance)) = (target.tenant, target.instance) else {
        return Ok(Err(not_admitted(NotAdmitted::NoIdentity)));
    };
    let identity = IdentityKey { person, instance };
    let admitted = match person::admit(tx, application, identity, tenant, context.now)? {
        Ok(admitted) => admitted,
        Err(why) => return Ok(Err(not_admitted(why))),
    };
    let consent = consent_of(tx, application, person, &requested_access(application, &checked))?;
    if consent == (Consent::External { is_covered: false }) {
        let detail = "An administrator consents for the client app, and has not consented to all of this.";
        return Ok(Err(ProtocolError::new(ErrorCode::ConsentRequired, detail)));
    }
    let (scope, requested) = granted_of(application, &checked.request, |_| true);
    let granted = Granted {
        person,
        tenant,
        issuing: None,
        instance,
        session: None,
        auth_time: 0,
        proven_at: None,
        acr: String::new(),
        amr: vec![String::new()],
        scope,
        resources: checked.request.resources,
        cnf: None,
        requested,
        provider_claims: provider_claims(context, tx, person, instance)?,
    };
    let Some(preview) = Preview::read(tx, application, &granted, &admitted)? else {
        return Ok(Err(not_admitted(NotAdmitted::Account)));
    };
    let lifetimes = application.tenant(tenant).map(|tenant| Lifetimes::of(&tenant.options));
    Ok(Ok(PreviewInput {
        preview,
        target,
        application: application.id,
        aud,
        lifetimes: lifetimes.ok_or_else(|| StoreError::Internal("a tenant has no options".into()))?,
        issuer: chancery_auth::issuer_url(&context.app.public_url, None),
        of_userinfo: check_use(&application.unsupported_settings, Use::UserInfo).err(),
        granted,
        now: context.now,
    }))
}

/// The reason for administrators why a person is not admitted.
const fn not_admitted(why: NotAdmitted) -> ProtocolError {
    let detail = match why {
        NotAdmitted::NoIdentity => {
            "The person has no active identity at an instance that the client app and one of its tenants have."
        }
        NotAdmitted::OtherSubscription => {
            "The person is of another subscription, and the client app has allowCrossSubscription off."
        }
        NotAdmitted::Restricted => {
            "The client app is restricted, and neither the person nor a group of the person is authorized."
        }
        NotAdmitted::Account | NotAdmitted::PasswordExpired | NotAdmitted::SecondFactorUnavailable => {
            "The person, or the person's user in the store, is locked, not active, or not valid now."
        }
    };
    ProtocolError::new(ErrorCode::AccessDenied, detail)
}

/// Refuses ids in the body that the caller may not read.
fn check_named(context: &Context, tx: &mut Tx<'_>, form: &TokenPreview) -> Result<(), Problem> {
    let named: [(&'static Field, &'static Shape, Option<Uuid>); 3] = [
        (TokenPreview::PLATFORM_USER_ID.field(), &APPLICATION_USER, Some(form.platform_user_id.0)),
        (TokenPreview::TENANT_ID.field(), &TENANT, form.tenant_id.map(|id| id.0)),
        (TokenPreview::IDP_INSTANCE_ID.field(), &IDP_INSTANCE, form.idp_instance_id.map(|id| id.0)),
    ];
    for (field, shape, id) in named {
        if let Some(id) = id
            && visible(context, tx, shape, &[id])?.is_empty()
        {
            return Err(Problem::wrong_field(field, format!("names no {}", shape.name)));
        }
    }
    Ok(())
}

/// Refuses callers who may not read the people of an instance: tokens contain more data of a person than the platform
/// user does.
fn check_may_read(context: &Context, tx: &mut Tx<'_>, instance: Uuid) -> Result<(), Problem> {
    match &context.authority {
        Authority::Roles(held) if may_read_people(tx, held, instance)? => Ok(()),
        _ => {
            let detail = "None of the caller's roles lets it read the users of the person's user store or identity provider.";
            Err(Problem::new(ProblemKind::Forbidden, detail))
        }
    }
}

/// Claims of an external identity provider from the person's last used session; empty if there is none.
fn provider_claims(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    instance: Uuid,
) -> Result<Vec<(String, String)>, StoreError> {
    let text = "SELECT id FROM sign_in_session WHERE person_id = ?1 AND idp_instance_id = ?2 AND ended_on IS NULL \
        AND expires_on > ?3 AND provider_claims IS NOT NULL ORDER BY used_on DESC, id DESC LIMIT 1";
    let key = [person.into(), instance.into(), context.now.0.into()];
    let Some(session) = tx.one(text, &key, |row| row.id(0))? else { return Ok(Vec::new()) };
    session::provider_claims(tx, &context.app.master, session, instance)
}

/// The requested tenant and instance, else the first ones where the person has an identity.
fn find_target(
    tx: &mut Tx<'_>,
    application: &Application,
    form: &TokenPreview,
) -> Result<SignInTarget, StoreError> {
    let known = person::instances_of(tx, form.platform_user_id.0)?;
    let tenants = application.tenants.iter();
    let tenants = tenants.filter(|tenant| form.tenant_id.is_none_or(|id| id.0 == tenant.facts.id));
    let of_tenant = |tenant: &crate::client_app::ServingTenant| {
        let mut instances = tenant.facts.instances.iter().map(|instance| instance.id);
        let fits =
            |id: &Uuid| known.contains(id) && form.idp_instance_id.is_none_or(|requested| requested.0 == *id);
        Some(SignInTarget { tenant: Some(tenant.facts.id), instance: Some(instances.find(fits)?) })
    };
    let mut targets = tenants.filter_map(of_tenant);
    Ok(targets.next().unwrap_or_default())
}

/// Validates the authorization request that a client app would send.
fn check_request(
    context: &Context,
    tx: &mut Tx<'_>,
    application: &Application,
    form: &TokenPreview,
) -> Result<Result<CheckedRequest, ProtocolError>, StoreError> {
    let redirect = match application.login_uris.first() {
        Some(uri) => uri.clone(),
        // the console's is this server's own, and devices need none
        None if application.id == CONSOLE || application.allows_devices => {
            format!("{}{CONSOLE_RETURN}", context.app.public_url)
        }
        None => {
            let detail = "The client app has no redirect URI of the type Login.";
            return Ok(Err(ProtocolError::new(ErrorCode::InvalidRequest, detail)));
        }
    };
    let whole = |application| with_facts(application, |facts| maximum_scope(facts).to_string());
    let scope = form.scope.as_ref().map_or_else(|| whole(application), |own| own.as_str().to_owned());
    let claims = form.claims.as_ref().map(|claims| claims.as_str().to_owned());
    let fixed = [
        ("client_id", Some(application.id.to_string())),
        ("redirect_uri", Some(redirect)),
        ("response_type", Some("code".to_owned())),
        ("scope", Some(scope).filter(|scope| !scope.is_empty())),
        ("code_challenge", Some(CHALLENGE.to_owned())),
        ("code_challenge_method", Some("S256".to_owned())),
        ("claims", claims),
    ];
    let fixed = fixed.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let resources = as_registered(tx, &form.resources.0)?.into_iter().map(|key| ("resource", key));
    let parameters = fixed.chain(resources).map(|(name, value)| (name.to_owned(), value));
    let parameters: Vec<(String, String)> = parameters.collect();
    Ok(ResponseTarget::read(&parameters)
        .and_then(|addressing| validate_request(application, &addressing, &parameters, None)))
}
