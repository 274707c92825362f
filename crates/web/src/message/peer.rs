//! The origin of a request: its address, what is served there, and its trace.

use std::{net::IpAddr, sync::OnceLock};

use http::request::Parts;
use tracing::{Span, field::Empty};

use crate::trace::TraceId;

/// The content that an address serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerRole {
    All,
    /// All but the console, which has an address of its own.
    AllButConsole,
    Metrics,
}

/// A request's origin.
#[derive(Clone)]
pub struct Peer {
    /// The address.
    pub address: IpAddr,
    /// The request's trace, set on first use.
    pub trace: OnceLock<TraceId>,
    /// The content that the address of the request serves.
    pub(crate) serves: ListenerRole,
}

/// The address that a request comes from.
pub fn address_of(parts: &Parts) -> std::net::IpAddr {
    parts.extensions.get::<Peer>().map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |peer| peer.address)
}

/// The trace id of a request; the same on each call.
pub fn trace_of(parts: &Parts) -> TraceId {
    let new_id = || TraceId::from_headers(&parts.headers).unwrap_or_else(TraceId::random);
    parts.extensions.get::<Peer>().map_or_else(new_id, |peer| *peer.trace.get_or_init(new_id))
}

/// The span of a request. It is created at any log level, as long as there is a log: errors belong to
/// requests, too.
pub fn span_of(parts: &Parts) -> Span {
    tracing::error_span!(
        "request",
        trace_id = %trace_of(parts),
        operation = Empty,
        store = Empty,
        client = Empty
    )
}
