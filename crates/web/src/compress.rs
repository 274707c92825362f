//! Compressed answers: lists, documents and assets, as they are produced. Never an answer with a secret: the
//! compressed length would leak it to an attacker who can put a guess into the same answer (BREACH).

use std::{
    io::Write,
    pin::Pin,
    sync::OnceLock,
    task::{Context, Poll},
};

use bytes::Bytes;
use chancery_record::{Column, Sealing};
use chancery_resource::{Method, Op, Personal, Problem, Reply, Shape};
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::{Body, Frame};

use crate::{
    answer::{AnswerBody, Interrupted, respond},
    app::App,
    body::off_workers,
    request::weight,
};

/// Shorter complete bodies are not compressed, in bytes.
const SMALL: usize = 1024;
/// Longer complete bodies are compressed off the workers, in bytes.
const LONG: usize = 256 << 10;
/// The window of an encoder as a power of two: the part of a body that it holds.
const WINDOW: u32 = 18;

/// A coding of bodies, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The coding that the caller prefers; `None` where it prefers no coding, or states nothing.
    fn preferred(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        let named: Vec<(String, u32)> = lines.flat_map(|line| line.split(',')).map(weighed).collect();
        let weight = |name: &str| {
            let own = named.iter().find(|(coding, _)| coding == name);
            own.or_else(|| named.iter().find(|(coding, _)| coding == "*")).map_or(0, |(_, weight)| *weight)
        };
        let plain = named.iter().find(|(coding, _)| coding == "identity").map_or(0, |(_, weight)| *weight);
        let best = Self::ALL.into_iter().rev().max_by_key(|coding| weight(coding.name()))?;
        (weight(best.name()) > 0 && weight(best.name()) >= plain).then_some(best)
    }

    /// All of a body, encoded; `None` where that fails.
    fn encode(self, bytes: &[u8]) -> Option<Bytes> {
        let mut encoder = Encoder::new(self)?;
        let mut encoded_bytes = encoder.take(bytes).ok()?;
        encoded_bytes.append(&mut encoder.finish().ok()?);
        Some(encoded_bytes.into())
    }

    /// Sets the headers of an encoded body. Another coding is another representation.
    fn set_headers(self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(self.name()));
        let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
        let tag = tag.and_then(|tag| tag.strip_suffix('"')).map(|tag| format!("{tag}.{}\"", self.name()));
        if let Some(tag) = tag.and_then(|tag| HeaderValue::try_from(tag).ok()) {
            headers.insert(header::ETAG, tag);
        }
    }
}

/// A coding of the header and its weight in thousandths.
fn weighed(part: &str) -> (String, u32) {
    let mut words = part.split(';');
    let name = words.next().unwrap_or_default().trim().to_ascii_lowercase();
    (name, weight(words))
}

/// Whether the answers of an operation may be compressed.
pub fn is_compressible(op: &Op) -> bool {
    // a resource with locations is a page or a file of one
    let is_long = op.reply.is_list() || matches!(op.reply, Reply::Content(_)) || op.shape.is_located();
    op.method == Method::Get && is_long && !holds_secrets(op.shape)
}

/// Whether rows of a resource hold secrets, or report changes to such.
fn holds_secrets(shape: &Shape) -> bool {
    let is_secret = |shape: &Shape| {
        shape.fields.iter().any(|field| {
            field.access.sealing == Sealing::Secret
                || (field.access.column == Column::Unstored && field.access.shown)
        })
    };
    is_secret(shape)
        || matches!(shape.personal, Personal::AuditOf(_))
        || shape.relations.iter().any(|relation| is_secret(relation.target))
}

/// Compresses an answer as the caller prefers, if its media type is compressible. A complete body is
/// encoded here: only a streamed one, which is bounded where it is produced, holds an encoder while read.
pub async fn compress(
    app: &App,
    headers: &HeaderMap,
    response: Response<AnswerBody>,
) -> Result<Response<AnswerBody>, Problem> {
    let is_text =
        response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(
            |kind| {
                let essence = kind.split(';').next().unwrap_or_default().trim();
                essence.starts_with("text/") || ["application/json", "image/svg+xml"].contains(&essence)
            },
        );
    if !is_text {
        return Ok(response);
    }
    let (mut answered, body) = response.into_parts();
    answered.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let Some(coding) = Coding::preferred(headers) else { return Ok(Response::from_parts(answered, body)) };
    let encoded = match body {
        AnswerBody::Whole(Some(bytes)) if bytes.len() >= SMALL => {
            let plain = bytes.clone();
            let encoded = if bytes.len() > LONG {
                off_workers(app, move || coding.encode(&bytes)).await?
            } else {
                coding.encode(&bytes)
            };
            encoded.map(|encoded| AnswerBody::Whole(Some(encoded))).ok_or(AnswerBody::Whole(Some(plain)))
        }
        AnswerBody::Parts(_) => match Encoder::new(coding) {
            Some(encoder) => {
                Ok(AnswerBody::EncodedBody(Box::new(EncodedBody { inner: body, encoder: Some(encoder) })))
            }
            None => Err(body),
        },
        as_it_is => Err(as_it_is),
    };
    if encoded.is_ok() {
        coding.set_headers(&mut answered.headers);
    }
    Ok(Response::from_parts(answered, encoded.unwrap_or_else(|as_it_is| as_it_is)))
}

/// A text that is the same for all callers, cached in each coding requested so far.
pub struct CompressedText {
    content_type: &'static str,
    plain: Bytes,
    encoded: [OnceLock<Option<Bytes>>; Coding::ALL.len()],
}

impl CompressedText {
    /// The text, which is compressed on the first request.
    pub fn new(content_type: &'static str, plain: Bytes) -> Self {
        Self { content_type, plain, encoded: Default::default() }
    }

    /// The text as an answer, in the coding that the caller prefers.
    pub fn answer(&self, headers: &HeaderMap) -> Response<AnswerBody> {
        let preferred = Coding::preferred(headers).filter(|_| self.plain.len() >= SMALL);
        let cached =
            Coding::ALL.into_iter().zip(&self.encoded).find(|(coding, _)| Some(*coding) == preferred);
        let encoded = cached.and_then(|(coding, cached)| {
            cached.get_or_init(|| coding.encode(&self.plain)).clone().map(|encoded| (coding, encoded))
        });
        let mut response = match encoded {
            Some((coding, encoded)) => {
                let mut response = respond(200, self.content_type, encoded);
                coding.set_headers(response.headers_mut());
                response
            }
            None => respond(200, self.content_type, self.plain.clone()),
        };
        response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        response
    }
}

/// A body that is streamed through an encoder.
pub struct EncodedBody {
    inner: AnswerBody,
    /// `None` when the body has ended.
    encoder: Option<Encoder>,
}

impl EncodedBody {
    /// The next frame.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        loop {
            let Some(mut encoder) = self.encoder.take() else { return Poll::Ready(None) };
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Pending => {
                    self.encoder = Some(encoder);
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    let compressed = frame.data_ref().map_or(Ok(Vec::new()), |data| encoder.take(data));
                    self.encoder = Some(encoder);
                    match compressed {
                        Ok(bytes) if bytes.is_empty() => {}
                        Ok(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes.into())))),
                        Err(_) => return Poll::Ready(Some(Err(Interrupted))),
                    }
                }
                Poll::Ready(None) => {
                    let last =
                        encoder.finish().map(|encoded| Frame::data(encoded.into())).map_err(|_| Interrupted);
                    return Poll::Ready(Some(last));
                }
                Poll::Ready(Some(Err(broken))) => return Poll::Ready(Some(Err(broken))),
            }
        }
    }

    /// Whether no frame follows.
    pub const fn is_over(&self) -> bool {
        self.encoder.is_none()
    }
}

enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    fn new(coding: Coding) -> Option<Self> {
        Some(match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).ok()?;
                encoder.window_log(WINDOW).ok()?;
                Self::Zstd(encoder)
            }
            Coding::Brotli => {
                Self::Brotli(Box::new(brotli::CompressorWriter::new(Vec::new(), 4096, 4, WINDOW)))
            }
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(4))),
        })
    }

    /// Encodes data; returns the encoded bytes that are ready.
    fn take(&mut self, data: &[u8]) -> std::io::Result<Vec<u8>> {
        let ready = match self {
            Self::Zstd(encoder) => {
                encoder.write_all(data)?;
                encoder.get_mut()
            }
            Self::Brotli(encoder) => {
                encoder.write_all(data)?;
                encoder.get_mut()
            }
            Self::Gzip(encoder) => {
                encoder.write_all(data)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(ready))
    }

    /// Ends the encoding; returns the remaining bytes.
    fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Zstd(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Gzip(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};

    use super::Coding;

    #[test]
    fn codings_are_chosen_by_their_weights() {
        let preferred = |value: &'static str| {
            Coding::preferred(&HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static(value),
            )]))
        };
        assert_eq!(preferred("gzip, deflate, br, zstd"), Some(Coding::Zstd));
        assert_eq!(preferred("gzip;q=1.0, BR;q=0.8"), Some(Coding::Gzip));
        assert_eq!(preferred("gzip, br"), Some(Coding::Brotli));
        assert_eq!(preferred("*"), Some(Coding::Zstd));
        assert_eq!(preferred("zstd;q=0, *;q=0.5"), Some(Coding::Brotli));
        for none in ["", "identity", "identity, gzip;q=0.5", "gzip;q=0", "deflate", "gzip;q=x"] {
            assert_eq!(preferred(none), None, "{none}");
        }
        assert_eq!(Coding::preferred(&HeaderMap::new()), None);
    }
}
