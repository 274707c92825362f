//! The files that pages show: custom assets, for everybody, by their locations.

use std::sync::Arc;

use bytes::Bytes;
use chancery_presentation::location::{Kind, level_of, normalise};
use chancery_record::Timestamp;
use chancery_resource::{Preconditions, Problem};
use chancery_signin::Asset;
use http::{HeaderValue, Response, header, request::Parts};

use crate::{
    app::App,
    message::{
        answer::{AnswerBody, respond},
        peer::address_of,
        request::text,
    },
};

/// How long a browser caches a file without revalidation.
const CACHING: &str = "public, max-age=300";
/// The permissions of a file that a browser opens by itself: none.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

/// Answers with the asset at a location, which is written without its first slash.
pub async fn content(
    app: &App,
    parts: &Parts,
    location: &str,
    now: Timestamp,
) -> Result<Response<AnswerBody>, Problem> {
    let asset = find(app, parts, location, now).await?.ok_or_else(|| Problem::not_found("file here"))?;
    let tag = format!("\"{}\"", asset.version);
    let if_none_match = text(&parts.headers, header::IF_NONE_MATCH).map(str::to_owned);
    let status = Preconditions { if_match: None, if_none_match }.evaluate(&tag, None)?;
    let body = if status == 304 { Bytes::new() } else { asset.data.clone() };
    let mut response = respond(status, asset.media_type, body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(CACHING));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}

/// A file that must be read from the database counts as a page of its address.
async fn find(
    app: &App,
    parts: &Parts,
    location: &str,
    now: Timestamp,
) -> Result<Option<Arc<Asset>>, Problem> {
    let Ok(location) = normalise(location) else { return Ok(None) };
    if level_of(&location).is_none() || location.starts_with(&format!("/{}/", Kind::View.segment())) {
        return Ok(None);
    }
    if let Some(known) = app.appearances.known_asset(&app.store, &location).await? {
        return Ok(Some(known));
    }
    app.page_limiter.admit_address(address_of(parts), now)?;
    Ok(app.appearances.read_asset(&app.store, &location).await?)
}
