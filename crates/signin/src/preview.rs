//! What the tokens of a person would tell a client app. The request is judged, the person admitted, and the claims made by the code that
//! issues tokens; nothing is issued, signed or written.

mod document;

use chancery_application::APPLICATION_USER;
use chancery_auth::may_read_people;
use chancery_flow::{Consent, NotAdmitted};
use chancery_management::{
    client_app::{CLIENT_APP, token_preview::TokenPreview},
    idp_instance::IDP_INSTANCE,
    tenant::TENANT,
};
use chancery_oauth::{Addressing, Checked, Code, Refusal, Use, check_use, whole_scope};
use chancery_record::{Field, Value};
use chancery_resource::{
    Answer, Authority, CONSOLE, Call, Context, Problem, ProblemKind, Purpose, Shape, StoreError, Tx, Work,
    find_row, read_form, visible,
};
use serde_json::Value as Json;
use uuid::Uuid;

use self::document::{Place, Ready, refused};
use crate::{
    application::{Application, NOT_SERVING, load, with_facts},
    audience::{as_registered, audience},
    authorize::judge,
    claims::Preview,
    code::granted_of,
    consent::consent_of,
    console::CONSOLE_RETURN,
    granted::Granted,
    person,
    provider::asked_of,
    session,
    tokens::Lifetimes,
};

/// A challenge of PKCE: the request that is judged is as good as it can be.
const CHALLENGE: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Runs the operation `PreviewTokens`: reads and judges in the transaction, and makes claims in the pool of workers.
///
/// # Errors
/// The caller may not read the client app or the person; those of the store.
pub fn preview_tokens(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let told = match call.result::<Json>() {
        Some(told) => told.to_string(),
        None => match prepare(call, tx)? {
            Ok(ready) => return Ok(Answer::after(Work::new(Purpose::Pattern, move || ready.tell()))),
            Err(refused) => refused.to_string(),
        },
    };
    call.answer.bytes.extend_from_slice(told.as_bytes());
    Ok(Answer::new(call.request.op.status))
}

/// Reads all that the tokens are made of. The error is the answer that tells why there are none.
fn prepare(call: &Call, tx: &mut Tx<'_>) -> Result<Result<Ready, Json>, Problem> {
    let context = &call.context;
    let (_, id) = find_row(context, tx, &CLIENT_APP, call.request.parameter(0))?;
    let asked: TokenPreview = read_form(call)?;
    check_named(context, tx, &asked)?;
    let Value::Id(id) = id else { return Err(Problem::not_found(CLIENT_APP.name)) };
    let Some(application) = load(tx, id)?.filter(|found| found.enabled) else {
        let refusal = Refusal::new(Code::UnauthorizedClient, NOT_SERVING);
        return Ok(Err(refused(Place::default(), refusal)));
    };
    let place = find_place(tx, &application, &asked)?;
    // what follows reads what is known of the person there
    if let Some(instance) = place.instance {
        check_may_read(context, tx, instance)?;
    }
    Ok(read(context, tx, (application, place), &asked)?.map_err(|refusal| refused(place, refusal)))
}

fn read(
    context: &Context,
    tx: &mut Tx<'_>,
    (application, place): (Application, Place),
    asked: &TokenPreview,
) -> Result<Result<Ready, Refusal>, Problem> {
    let person = asked.platform_user_id.0;
    let checked = match judge_request(context, tx, &application, asked)? {
        Ok(checked) => checked,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let aud = match audience(tx, &application, &checked.request.resources)? {
        Ok(aud) => aud,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (Some(tenant), Some(instance)) = (place.tenant, place.instance) else {
        return Ok(Err(not_admitted(NotAdmitted::NoIdentity)));
    };
    let admitted = match person::admit(tx, &application, (person, instance), tenant, context.now)? {
        Ok(admitted) => admitted,
        Err(why) => return Ok(Err(not_admitted(why))),
    };
    let consent = consent_of(tx, &application, person, &asked_of(&application, &checked))?;
    if consent == (Consent::External { is_covered: false }) {
        let detail = "An administrator consents for the client app, and has not consented to all of this.";
        return Ok(Err(Refusal::new(Code::ConsentRequired, detail)));
    }
    let (scope, requested) = granted_of(&application, &checked.request, |_| true);
    let granted = Granted {
        person,
        tenant,
        issuing: None,
        instance,
        session: None,
        auth_time: 0,
        acr: String::new(),
        amr: vec![String::new()],
        scope,
        resources: checked.request.resources,
        cnf: None,
        requested,
        provider_claims: provider_claims(context, tx, (person, instance))?,
    };
    let Some(preview) = Preview::read(tx, &application, &granted, &admitted)? else {
        return Ok(Err(not_admitted(NotAdmitted::Account)));
    };
    let lifetimes = application.tenant(tenant).map(|tenant| Lifetimes::of(&tenant.options));
    Ok(Ok(Ready {
        preview,
        place,
        application: application.id,
        aud,
        lifetimes: lifetimes.ok_or_else(|| StoreError::Internal("a tenant has no options".into()))?,
        issuer: chancery_auth::issuer_url(&context.app.public_url, None),
        of_userinfo: check_use(&application.unserved, Use::UserInfo).err(),
        granted,
        now: context.now,
    }))
}

/// Why a person is not admitted, for administrators.
const fn not_admitted(why: NotAdmitted) -> Refusal {
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
    Refusal::new(Code::AccessDenied, detail)
}

/// Refuses what the body names and the caller may not read.
fn check_named(context: &Context, tx: &mut Tx<'_>, asked: &TokenPreview) -> Result<(), Problem> {
    let named: [(&'static Field, &'static Shape, Option<Uuid>); 3] = [
        (TokenPreview::PLATFORM_USER_ID.field(), &APPLICATION_USER, Some(asked.platform_user_id.0)),
        (TokenPreview::TENANT_ID.field(), &TENANT, asked.tenant_id.map(|id| id.0)),
        (TokenPreview::IDP_INSTANCE_ID.field(), &IDP_INSTANCE, asked.idp_instance_id.map(|id| id.0)),
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

/// Refuses who may not read the people of an instance: tokens tell more of a person than the platform user does.
fn check_may_read(context: &Context, tx: &mut Tx<'_>, instance: Uuid) -> Result<(), Problem> {
    match &context.authority {
        Authority::Roles(held) if may_read_people(tx, held, instance)? => Ok(()),
        _ => {
            let detail = "None of the caller's roles lets it read the users of the person's user store or identity provider.";
            Err(Problem::new(ProblemKind::Forbidden, detail))
        }
    }
}

/// What an external identity provider told in the session of a person that was used last; nothing where there is none.
fn provider_claims(
    context: &Context,
    tx: &mut Tx<'_>,
    (person, instance): (Uuid, Uuid),
) -> Result<Vec<(String, String)>, StoreError> {
    let text = "SELECT id FROM sign_in_session WHERE person_id = ?1 AND idp_instance_id = ?2 AND ended_on IS NULL \
        AND expires_on > ?3 AND provider_claims IS NOT NULL ORDER BY used_on DESC, id DESC LIMIT 1";
    let key = [person.into(), instance.into(), context.now.0.into()];
    let Some(session) = tx.one(text, &key, |row| row.id(0))? else { return Ok(Vec::new()) };
    session::provider_claims(tx, &context.app.master, (session, instance))
}

/// The tenant and the instance: those that are asked for, else the first ones where the person has an identity.
fn find_place(tx: &mut Tx<'_>, application: &Application, asked: &TokenPreview) -> Result<Place, StoreError> {
    let known = person::instances_of(tx, asked.platform_user_id.0)?;
    let tenants = application.tenants.iter();
    let tenants = tenants.filter(|tenant| asked.tenant_id.is_none_or(|id| id.0 == tenant.facts.id));
    let of_tenant = |tenant: &crate::application::ServingTenant| {
        let mut instances = tenant.facts.instances.iter().map(|instance| instance.id);
        let fits = |id: &Uuid| known.contains(id) && asked.idp_instance_id.is_none_or(|asked| asked.0 == *id);
        Some(Place { tenant: Some(tenant.facts.id), instance: Some(instances.find(fits)?) })
    };
    let mut places = tenants.filter_map(of_tenant);
    Ok(places.next().unwrap_or_default())
}

/// Judges the authorization request that a client app would make.
fn judge_request(
    context: &Context,
    tx: &mut Tx<'_>,
    application: &Application,
    asked: &TokenPreview,
) -> Result<Result<Checked, Refusal>, StoreError> {
    let redirect = match application.login_uris.first() {
        Some(uri) => uri.clone(),
        // the console's is this server's own, and devices need none
        None if application.id == CONSOLE || application.allows_devices => {
            format!("{}{CONSOLE_RETURN}", context.app.public_url)
        }
        None => {
            let detail = "The client app has no redirect URI of the type Login.";
            return Ok(Err(Refusal::new(Code::InvalidRequest, detail)));
        }
    };
    let whole = |application| with_facts(application, |facts| whole_scope(facts).to_string());
    let scope = asked.scope.as_ref().map_or_else(|| whole(application), |own| own.as_str().to_owned());
    let claims = asked.claims.as_ref().map(|claims| claims.as_str().to_owned());
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
    let resources = as_registered(tx, &asked.resources.0)?.into_iter().map(|key| ("resource", key));
    let parameters = fixed.chain(resources).map(|(name, value)| (name.to_owned(), value));
    let parameters: Vec<(String, String)> = parameters.collect();
    Ok(Addressing::read(&parameters)
        .and_then(|addressing| judge(application, &addressing, &parameters, None)))
}
