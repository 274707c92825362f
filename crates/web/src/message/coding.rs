//! Codings of bodies (RFC 9110, section 8.4): the one that a caller prefers, and their encoders.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, header};

use super::request::weight;

/// Shorter complete bodies are not compressed, in bytes.
pub const SMALL: usize = 1024;
/// The window of an encoder as a power of two: the part of a body that it holds.
const WINDOW: u32 = 18;

/// A coding of bodies, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// The coding that the caller prefers; `None` where it prefers no coding, or states nothing.
    pub fn preferred(headers: &HeaderMap) -> Option<Self> {
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
    pub fn encode(self, bytes: &[u8], effort: Effort) -> Option<Bytes> {
        let mut encoder = Encoder::new(self, effort)?;
        let mut encoded_bytes = encoder.take(bytes).ok()?;
        encoded_bytes.append(&mut encoder.finish().ok()?);
        Some(encoded_bytes.into())
    }

    /// Sets the headers of an encoded body. Another coding is another representation.
    pub fn set_headers(self, headers: &mut HeaderMap) {
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

/// How hard an encoder works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For a body that is sent once.
    Low,
    /// For a text that is encoded once and sent often.
    High,
}

impl Effort {
    /// The level of a library whose levels these are.
    const fn level<T: Copy>(self, low: T, high: T) -> T {
        match self {
            Self::Low => low,
            Self::High => high,
        }
    }
}

/// An encoder of a body.
pub enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
}

impl Encoder {
    /// An encoder of this coding; `None` where it cannot be made.
    pub fn new(coding: Coding, effort: Effort) -> Option<Self> {
        Some(match coding {
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), effort.level(3, 19)).ok()?;
                encoder.window_log(WINDOW).ok()?;
                Self::Zstd(encoder)
            }
            Coding::Brotli => {
                let level = effort.level(4, 9);
                Self::Brotli(Box::new(brotli::CompressorWriter::new(Vec::new(), 4096, level, WINDOW)))
            }
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(effort.level(4, 9)))),
        })
    }

    /// Encodes data; returns the encoded bytes that are ready.
    pub fn take(&mut self, data: &[u8]) -> std::io::Result<Vec<u8>> {
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
    pub fn finish(self) -> std::io::Result<Vec<u8>> {
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
