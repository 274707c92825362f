//! The one part with content of a `multipart/form-data` body (RFC 7578).

use std::{convert::Infallible, fmt::Display, future::ready};

use bytes::Bytes;
use futures_util::{FutureExt, stream};
use multer::{Multipart, parse_boundary};

use crate::PictureRefusal;

/// How many parts a body may have, empty ones included.
const MAX_PARTS: usize = 8;
/// How many bytes the names and values of one part's headers may have together.
const MAX_HEADER_BYTES: usize = 4096;

/// The content type, if it has one, and the bytes of the only non-empty part.
pub fn single_part(content_type: &str, body: &[u8]) -> Result<(Option<String>, Bytes), PictureRefusal> {
    let boundary = parse_boundary(content_type).map_err(malformed)?;
    let whole = stream::once(ready(Ok::<_, Infallible>(Bytes::copy_from_slice(body))));
    // the complete body is in memory, so the future is ready at once
    let part_found = find_part(Multipart::new(whole, boundary)).now_or_never();
    part_found.unwrap_or_else(|| Err(PictureRefusal::Malformed("The parts have no end.".to_owned())))
}

async fn find_part(mut parts: Multipart<'_>) -> Result<(Option<String>, Bytes), PictureRefusal> {
    let mut content = None;
    let mut count = 0;
    while let Some(part) = parts.next_field().await.map_err(malformed)? {
        count += 1;
        let header_bytes: usize =
            part.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if count > MAX_PARTS || header_bytes > MAX_HEADER_BYTES {
            return Err(PictureRefusal::Malformed(format!(
                "There are more than {MAX_PARTS} parts, or one has more than {MAX_HEADER_BYTES} bytes of headers."
            )));
        }
        let content_type = match part.headers().get("content-type").map(|value| value.to_str()) {
            Some(Ok(text)) => Some(text.to_owned()),
            Some(Err(_)) => return Err(PictureRefusal::UnsupportedType),
            None => None,
        };
        let bytes = part.bytes().await.map_err(malformed)?;
        if !bytes.is_empty() && content.replace((content_type, bytes)).is_some() {
            return Err(PictureRefusal::Malformed("More than one part has content.".to_owned()));
        }
    }
    content.ok_or_else(|| PictureRefusal::Malformed("No part has content.".to_owned()))
}

fn malformed(error: impl Display) -> PictureRefusal {
    // the library's message may repeat what the client sent, at any length
    let message: String = error.to_string().chars().take(200).collect();
    PictureRefusal::Malformed(format!("Not multipart/form-data: {message}."))
}
