//! One bounded HTTP request, within a policy of destinations.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use chancery_record::Secret;
use http::{
    Method, Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Bytes, Incoming};
use tokio::{net::lookup_host, time::timeout};
use url::{Host, Position, Url};

use crate::{
    Failure, Networks, Permission,
    connection::{Connection, Connections},
};

const MAX_URL: usize = 2_048;

/// The bounds of size and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest answer, in bytes.
    pub bytes: usize,
    /// The longest time, from the look-up of the host to the last byte.
    pub seconds: u64,
}

/// The destinations allowed beyond `https` to the public internet. By default there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Networks outside the public internet that may be fetched from, such as the operator's own.
    pub networks: Networks,
    /// Whether `http` is allowed, to loopback addresses of these networks only: for tests and development.
    pub plain_loopback: bool,
    /// Root certificates (DER) that are trusted besides the system's; invalid ones are ignored.
    pub roots: Vec<Vec<u8>>,
}

impl Policy {
    /// Allows these networks besides the public internet, without TLS those of the machine itself.
    pub fn within(networks: Networks) -> Self {
        Self { plain_loopback: networks.hold_loopback(), networks, roots: Vec::new() }
    }
}

/// Fetches the document at a URL.
///
/// # Errors
/// [`Failure`], also for every status but 200.
pub async fn get(url: &str, limits: Limits, policy: &Policy) -> Result<Vec<u8>, Failure> {
    match request(url, None, limits, policy, None).await? {
        HostResponse { status: StatusCode::OK, document, .. } => Ok(document),
        HostResponse { status, .. } => Err(Failure::Status(status.as_u16())),
    }
}

/// The body and headers of a request. They may be secret, and are not printed.
#[derive(Clone)]
pub struct PostBody {
    /// The method. GET has no body.
    pub method: Method,
    /// The media type.
    pub media_type: &'static str,
    /// The text.
    pub text: String,
    /// The bearer token of this server (RFC 6750).
    pub bearer: Option<Secret>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Whether the body of an error response is read, too.
    pub reads_error_body: bool,
}

impl PostBody {
    /// A GET with headers only.
    pub fn get() -> Self {
        Self { method: Method::GET, ..Self::of("text/plain", String::new()) }
    }

    /// A form.
    pub const fn form(text: String) -> Self {
        Self::of("application/x-www-form-urlencoded", text)
    }

    /// JSON.
    pub const fn json(text: String) -> Self {
        Self::of("application/json", text)
    }

    /// A text of a media type.
    pub const fn of(media_type: &'static str, text: String) -> Self {
        let method = Method::POST;
        Self { method, media_type, text, bearer: None, headers: Vec::new(), reads_error_body: false }
    }
}

/// Posts to a URL. Returns the status of the answer; the body is read within the limits and discarded.
///
/// # Errors
/// [`Failure`]
pub async fn post(
    _: Permission,
    url: &str,
    body: PostBody,
    limits: Limits,
    policy: &Policy,
) -> Result<u16, Failure> {
    request(url, Some(body), limits, policy, None).await.map(|response| response.status.as_u16())
}

/// Connections that requests of an owner reuse.
#[derive(Clone, Copy)]
pub struct Pool<'a> {
    /// The connections of all owners.
    pub connections: &'a Connections,
    /// The owner.
    pub owner: u128,
}

/// Delivers a body to a URL. Returns the status and the seconds of `Retry-After`; the response body is dropped. With a
/// pooled connection of the owner, the request is sent once more if the host had closed it.
///
/// # Errors
/// [`Failure`]
pub async fn deliver(
    _: Permission,
    url: &str,
    body: PostBody,
    limits: Limits,
    policy: &Policy,
    pool: Pool<'_>,
) -> Result<(u16, Option<i64>), Failure> {
    let response = request(url, Some(body), limits, policy, Some(pool)).await?;
    Ok((response.status.as_u16(), response.retry_after))
}

/// Posts a form to a URL. Returns the status and the body of the response, also of an error.
///
/// # Errors
/// [`Failure`]
pub async fn exchange(
    url: &str,
    form: String,
    limits: Limits,
    policy: &Policy,
) -> Result<(u16, Vec<u8>), Failure> {
    send_request(url, PostBody { reads_error_body: true, ..PostBody::form(form) }, limits, policy).await
}

/// Sends a request that notifies nobody, such as a token request. Returns the status, and the body if it is
/// read.
///
/// # Errors
/// [`Failure`]
pub async fn send_request(
    url: &str,
    body: PostBody,
    limits: Limits,
    policy: &Policy,
) -> Result<(u16, Vec<u8>), Failure> {
    let response = request(url, Some(body), limits, policy, None).await?;
    Ok((response.status.as_u16(), response.document))
}

/// The response of a host.
struct HostResponse {
    status: StatusCode,
    /// In seconds.
    retry_after: Option<i64>,
    document: Vec<u8>,
}

async fn request(
    url: &str,
    body: Option<PostBody>,
    limits: Limits,
    policy: &Policy,
    pool: Option<Pool<'_>>,
) -> Result<HostResponse, Failure> {
    if url.len() > MAX_URL {
        return Err(Failure::Url);
    }
    let url = Url::parse(url).map_err(|_| Failure::Url)?;
    let is_plain = match url.scheme() {
        "https" => false,
        "http" if policy.plain_loopback => true,
        _ => return Err(Failure::Scheme),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::Url);
    }
    let time = Duration::from_secs(limits.seconds);
    let fetching = async {
        let addresses = addresses(&url, is_plain, policy).await?;
        let host = if is_plain { None } else { Some(url.host().ok_or(Failure::Url)?) };
        let secure = host.map(|host| (host, policy.roots.as_slice()));
        let reads_error_body = body.as_ref().is_some_and(|body| body.reads_error_body);
        let request = prepare(&url, body)?;
        let pool = pool.map(|pool| (pool.connections, (pool.owner, url[..Position::BeforePath].to_owned())));
        let idle = pool.as_ref().and_then(|(connections, key)| connections.take(key, &addresses));
        let (connection, response) = send(idle, Connection::open(&addresses, secure, time), request).await?;
        let head = HostResponse::of(&response);
        if let Some((connections, key)) = pool {
            connections.put_back(key, connection, response, limits.bytes).await;
            return Ok(head);
        }
        let is_read = head.status.is_success() || reads_error_body;
        let document = if is_read { read(response, limits.bytes).await? } else { Vec::new() };
        Ok(HostResponse { document, ..head })
    };
    timeout(time, fetching).await.unwrap_or(Err(Failure::TimedOut))
}

/// Sends the request on an idle connection, or on a new one if the host has closed that.
async fn send(
    idle: Option<Connection>,
    open: impl Future<Output = Result<Connection, Failure>>,
    request: Request<Full<Bytes>>,
) -> Result<(Connection, Response<Incoming>), Failure> {
    if let Some(mut connection) = idle
        && let Ok(response) = connection.send(request.clone()).await
    {
        return Ok((connection, response));
    }
    let mut connection = open.await?;
    let response = connection.send(request).await?;
    Ok((connection, response))
}

impl HostResponse {
    /// The head of a response.
    fn of(response: &Response<Incoming>) -> Self {
        let after = response.headers().get(RETRY_AFTER);
        let retry_after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        Self { status: response.status(), retry_after, document: Vec::new() }
    }
}

/// The allowed addresses of a URL's host.
async fn addresses(url: &Url, is_plain: bool, policy: &Policy) -> Result<Vec<SocketAddr>, Failure> {
    let port = url.port_or_known_default().ok_or(Failure::Url)?;
    let host = match url.host().ok_or(Failure::Url)? {
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
        Host::Domain(name) => name.to_owned(),
    };
    let admit = |address: IpAddr| {
        if is_plain {
            address.is_loopback() && policy.networks.holds(address)
        } else {
            policy.networks.admit(address)
        }
    };
    look_up(&host, port, admit).await
}

/// Resolves a host, a name or an IP address, to its addresses on the public internet or in these networks. Connect to
/// these only: a second look-up could return another address.
///
/// # Errors
/// [`Failure::Name`]: the host has no address. [`Failure::Address`]: none of its addresses is allowed.
pub async fn resolve(host: &str, port: u16, networks: &Networks) -> Result<Vec<SocketAddr>, Failure> {
    look_up(host, port, |address| networks.admit(address)).await
}

async fn look_up(host: &str, port: u16, admit: impl Fn(IpAddr) -> bool) -> Result<Vec<SocketAddr>, Failure> {
    let mut addresses: Vec<SocketAddr> =
        lookup_host((host, port)).await.map_err(|_| Failure::Name)?.collect();
    if addresses.is_empty() {
        return Err(Failure::Name);
    }
    addresses.retain(|address| admit(address.ip()));
    if addresses.is_empty() { Err(Failure::Address) } else { Ok(addresses) }
}

/// Builds the request to a URL.
fn prepare(url: &Url, body: Option<PostBody>) -> Result<Request<Full<Bytes>>, Failure> {
    let mut request = Request::builder().uri(&url[Position::BeforePath..Position::AfterQuery]);
    let mut text = String::new();
    if let Some(body) = body {
        if body.method != Method::GET {
            request = request.header(CONTENT_TYPE, body.media_type);
        }
        request = request.method(body.method);
        if let Some(token) = body.bearer {
            let mut value =
                HeaderValue::from_bytes(&[b"Bearer ", token.expose()].concat()).map_err(|_| Failure::Url)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        for (name, value) in body.headers {
            let mut value = HeaderValue::try_from(value).map_err(|_| Failure::Url)?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        text = body.text;
    }
    request
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, concat!("chancery/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .body(Full::new(Bytes::from(text)))
        .map_err(|_| Failure::Url)
}

/// Reads the body of a response.
async fn read(mut response: Response<Incoming>, limit: usize) -> Result<Vec<u8>, Failure> {
    // a declared length is checked before the body is fetched
    if response.body().size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Failure::TooLarge);
    }
    let mut document = Vec::new();
    while let Some(frame) = response.frame().await {
        let frame = frame.map_err(|_| Failure::Broken)?;
        if let Some(data) = frame.data_ref() {
            if data.len() > limit - document.len() {
                return Err(Failure::TooLarge);
            }
            document.extend_from_slice(data);
        }
    }
    Ok(document)
}
