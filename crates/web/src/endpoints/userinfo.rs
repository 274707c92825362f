//! The UserInfo endpoint (OpenID Connect Core 1.0, section 5.3).

use chancery_auth::{Claims, ID_TOKEN, Issuer};
use chancery_record::Timestamp;
use chancery_resource::{Problem, ProblemKind};
use chancery_signin::{LACKS_OPENID, UserInfoRefusal};
use http::{Method, Response, request::Parts};
use serde_json::{Value, json};

use crate::{
    app::{App, NO_TOKEN, unauthorized},
    auth::token_binding::{PresentedToken, check_token_binding, invalid},
    connection::request_body::{RequestBody, SMALL_BODY},
    message::{
        answer::{AnswerBody, respond},
        request::{MediaType, Scheme, access_token, media_type, prefers, read_form},
    },
};

/// The media type of a signed answer (section 5.3.2).
const SIGNED: &str = "application/jwt";

/// Answers with the claims about the person of an access token, which comes in the header or, by POST, in a form.
pub async fn answer(
    app: &App,
    issuer: &Issuer,
    parts: &Parts,
    body: &mut RequestBody,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let form = token_of_form(app, parts, body).await?;
    let presented = access_token(&parts.headers).or(form.as_deref().map(|token| (Scheme::Bearer, token)));
    let Some((scheme, token)) = presented else { return Err(unauthorized(NO_TOKEN, None)) };
    let known = app.rights.load(&app.store, &app.token_service, Some(token), None, now).await?;
    let claims = known.claims.filter(|claims| claims.is_current(now) && claims.iss == issuer.url);
    let Some(claims) = claims else { return Err(invalid(scheme)) };
    let needs_nonce = known.caller.as_ref().is_some_and(|caller| caller.needs_nonce);
    let presented = PresentedToken { scheme, token, claims: &claims, needs_nonce };
    check_token_binding(app, parts, &presented, now).await?;
    match app.provider(&app.store).userinfo(&claims, now, known.epoch).await? {
        Ok(user_claims) if prefers(&parts.headers, SIGNED) => {
            Ok(respond(200, SIGNED, sign(app, issuer, &claims, user_claims, now, known.epoch).await?))
        }
        Ok(user_claims) => Ok(respond(200, "application/json", user_claims.to_string())),
        Err(UserInfoRefusal::InvalidToken) => Err(invalid(scheme)),
        Err(UserInfoRefusal::NotServed(detail)) => Err(Problem::new(ProblemKind::Conflict, detail)),
        Err(UserInfoRefusal::InsufficientScope) => {
            let challenge = "Bearer realm=\"chancery\", error=\"insufficient_scope\", scope=\"openid\"";
            Err(Problem::new(ProblemKind::Forbidden, LACKS_OPENID).with_header("www-authenticate", challenge))
        }
    }
}

/// The claims as a JWT for the client app of the access token, signed by the key that signs ID tokens.
async fn sign(
    app: &App,
    issuer: &Issuer,
    claims: &Claims,
    mut user_claims: Value,
    now: Timestamp,
    epoch: i64,
) -> Result<String, Problem> {
    if let Some(members) = user_claims.as_object_mut() {
        members.insert("iss".to_owned(), json!(issuer.url));
        members.insert("aud".to_owned(), json!(claims.client_id));
    }
    let claims = |_: &str| user_claims;
    Ok(app.token_service.sign_id_token(&app.store, ID_TOKEN, claims, issuer, now, epoch).await?)
}

async fn token_of_form(app: &App, parts: &Parts, body: &mut RequestBody) -> Result<Option<String>, Problem> {
    if parts.method != Method::POST || media_type(&parts.headers) != Some(MediaType::Form) {
        return Ok(None);
    }
    let mut room = app.bodies.reserve(None, &parts.headers, SMALL_BODY).await?;
    let bytes = body.receive(&app.connections, &parts.headers, &mut room).await?;
    let form = std::str::from_utf8(&bytes).map_err(|_| Problem::invalid("The form is not UTF-8."))?;
    let mut tokens = read_form(form)?.into_iter().filter(|(name, _)| name == "access_token");
    Ok(tokens.next().map(|(_, token)| token))
}
