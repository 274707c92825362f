//! The UserInfo endpoint (OpenID Connect Core 1.0, section 5.3).

use chancery_auth::Issuer;
use chancery_record::Timestamp;
use chancery_resource::{Problem, ProblemKind};
use chancery_signin::UserInfoRefusal;
use http::{Method, Response, request::Parts};

use crate::{
    answer::{AnswerBody, respond},
    app::{App, NO_TOKEN, unauthorized},
    body::{RequestBody, SMALL_BODY},
    guard::{PresentedToken, check, invalid},
    request::{MediaType, Scheme, access_token, media_type, read_form},
};

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
    let needs_nonce = known.caller.is_some_and(|caller| caller.needs_nonce);
    let presented = PresentedToken { scheme, token, claims: &claims, needs_nonce };
    check(app, parts, &presented, now).await?;
    match app.provider(&app.store).userinfo(&claims, now).await? {
        Ok(told) => Ok(respond(200, "application/json", told.to_string())),
        Err(UserInfoRefusal::InvalidToken) => Err(invalid(scheme)),
        Err(UserInfoRefusal::NotServed(detail)) => Err(Problem::new(ProblemKind::Conflict, detail)),
        Err(UserInfoRefusal::InsufficientScope) => {
            let detail = "The access token was not granted the scope openid.";
            let challenge = "Bearer realm=\"chancery\", error=\"insufficient_scope\", scope=\"openid\"";
            Err(Problem::new(ProblemKind::Forbidden, detail).with_header("www-authenticate", challenge))
        }
    }
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
