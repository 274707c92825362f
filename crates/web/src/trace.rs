//! Trace ids: one from a request to every log line written for it, the caller's (W3C Trace Context) or a new
//! one.

use std::{
    fmt,
    hash::{BuildHasher as _, Hasher as _, RandomState},
};

use chancery_auth::Caller;
use chancery_resource::Scope;
use http::HeaderMap;
use tracing::{Span, field::display};

/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// Identifies a request or a run of a job, in problems and in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(u128);

impl fmt::Display for TraceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

impl TraceId {
    /// A random trace id. No secret depends on it, so the cheap randomness of hash maps is enough.
    pub fn random() -> Self {
        let half = || u128::from(RandomState::new().build_hasher().finish());
        Self((half() << 64 | half()).max(1))
    }

    /// Its number, of 128 bits.
    pub const fn number(self) -> u128 {
        self.0
    }

    /// The caller's trace id, if there is exactly one `traceparent` and it is valid.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut parents = headers.get_all("traceparent").iter();
        let parent = parents.next()?.to_str().ok()?;
        if parents.next().is_some() {
            return None;
        }
        Self::read(parent)
    }

    /// Parses a `traceparent`. Those of later versions may be longer.
    fn read(parent: &str) -> Option<Self> {
        let (known, more) = parent.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let mut next = |length: usize| {
            let part = parts.next()?;
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            (part.len() == length && part.bytes().all(is_hex)).then_some(part)
        };
        let (version, id, parent_id, _flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
        let is_whole = more.is_empty() || (version != "00" && more.starts_with('-'));
        let is_sound = is_whole && version != "ff" && parent_id.bytes().any(|byte| byte != b'0');
        let id = u128::from_str_radix(id, 16).ok().filter(|id| *id != 0);
        id.filter(|_| is_sound).map(Self)
    }
}

/// Which answers are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// None.
    Off,
    /// Answers with a status of 400 or more.
    Errors,
    /// All.
    All,
}

impl AccessLog {
    /// All choices.
    pub const ALL: [Self; 3] = [Self::Off, Self::Errors, Self::All];

    /// The choice's name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Errors => "errors",
            Self::All => "all",
        }
    }

    /// Whether an answer with this status is logged.
    pub const fn has(self, status: u16) -> bool {
        matches!(self, Self::All) || (matches!(self, Self::Errors) && status >= 400)
    }
}

/// Records the caller and the store in the span of the request.
pub fn note(caller: Option<&Caller>, scope: &Scope) {
    let span = Span::current();
    if let Some(caller) = caller {
        span.record("client", display(caller.id));
    }
    if let Scope::Store(store) = scope {
        span.record("store", store.name.as_str());
    }
}

/// The span of one run of a job, with a trace id of its own.
pub fn of_job(job: &'static str) -> Span {
    tracing::error_span!("job", trace_id = %TraceId::random(), job)
}

#[cfg(test)]
mod tests {
    use super::TraceId;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn read(parent: &str) -> Option<String> {
        TraceId::read(parent).map(|id| id.to_string())
    }

    #[test]
    fn random_ids_differ_in_both_halves() {
        let ids: Vec<u128> = (0..1_000).map(|_| TraceId::random().0).collect();
        let halves = ids.iter().flat_map(|id| [id >> 64, id & u128::from(u64::MAX)]);
        assert_eq!(halves.collect::<std::collections::HashSet<_>>().len(), 2_000);
    }

    /// W3C Trace Context, section 3.2.
    #[test]
    fn a_valid_traceparent_is_used() {
        for parent in [
            format!("00-{ID}-00f067aa0ba902b7-01"),
            format!("00-{ID}-00f067aa0ba902b7-ff"),
            format!("cc-{ID}-00f067aa0ba902b7-01"),
            format!("cc-{ID}-00f067aa0ba902b7-01-what-the-future-will-be-like"),
        ] {
            assert_eq!(read(&parent).as_deref(), Some(ID), "{parent}");
        }
    }

    #[test]
    fn an_invalid_traceparent_is_ignored() {
        for parent in [
            String::new(),
            ID.to_owned(),
            format!("00-{ID}-00f067aa0ba902b7"),
            format!("00-{ID}-00f067aa0ba902b7-1"),
            format!("00-{ID}-00f067aa0ba902b7-01-more"),
            format!("cc-{ID}-00f067aa0ba902b7-01more"),
            format!("ff-{ID}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", ID.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{ID}-0000000000000000-01"),
            format!("00-{ID}-00f067aa0ba902bx-01"),
            format!("00 {ID} 00f067aa0ba902b7 01"),
            "é".repeat(40),
        ] {
            assert_eq!(read(&parent), None, "{parent}");
        }
        assert_eq!(read(&format!("00-{}1-00f067aa0ba902b7-01", "0".repeat(31))).unwrap().len(), 32);
    }
}
