//! Redirects, and pages that redirect where an address is too long for a header.

use chancery_auth::Issuer;
use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_signin::LONGEST_QUERY;
use http::{HeaderValue, Response, header, request::Parts};

use super::Parameters;
use crate::{
    app::App,
    message::{
        answer::{AnswerBody, respond},
        peer::address_of,
    },
    routes::system_route::SystemRoute,
};

/// A redirect that is followed by GET.
pub fn see_other(address: &str) -> Response<AnswerBody> {
    let mut response = respond(303, "text/plain", "");
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}

/// The longest address in a `Location` header: with it the head of an answer stays below 3.5 KB, which proxies accept.
pub const LONGEST_LOCATION: usize = 2_700;

/// A redirect to an address of a client app. If it is too long for a header, a page redirects to it.
pub fn redirect_to_client(address: &str) -> Response<AnswerBody> {
    if address.len() <= LONGEST_LOCATION {
        return see_other(address);
    }
    let escaped: String = address
        .chars()
        .map(|letter| match letter {
            '&' => "&amp;".to_owned(),
            '"' => "&quot;".to_owned(),
            '\'' => "&#39;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            other => other.to_string(),
        })
        .collect();
    let html = format!(
        "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={escaped}\">\
         <title>Chancery</title></head><body><a href=\"{escaped}\">&#8594;</a></body></html>"
    );
    let mut response = respond(200, "text/html; charset=utf-8", html);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; base-uri 'none'"),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// The redirect that answers a POST of a client app with the same request as GET, so that the browser sends its cookies, which it
/// omits for a form of another site. `None` if the address would be too long.
pub async fn redirect_as_get(
    app: &App,
    route: SystemRoute,
    issuer: &Issuer,
    parts: &Parts,
    form: &Parameters,
    now: Timestamp,
) -> Result<Option<Response<AnswerBody>>, Problem> {
    let address = |form: &Parameters| {
        let query = encoded_query(form.iter());
        (query.len() <= LONGEST_QUERY).then(|| redirect_to_client(&format!("{}?{query}", parts.uri.path())))
    };
    let led = address(form);
    if led.is_some() || route != SystemRoute::EndSession {
        return Ok(led);
    }
    app.page_limiter.admit_address(address_of(parts), now)?;
    let shortened = app.provider(&app.store).with_short_hint(form, issuer, now).await?;
    Ok(address(&shortened))
}

/// Parameters as a query.
pub fn encoded_query<'a>(parameters: impl Iterator<Item = &'a (String, String)>) -> String {
    let pairs = parameters.map(|(name, value)| (name, value));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
