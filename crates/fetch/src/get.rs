//! One bounded request, within a policy of destinations: a document is fetched, or a form is sent.

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
    /// Root certificates (DER) that are trusted beside the system's; one that cannot be read is left out.
    pub roots: Vec<Vec<u8>>,
}

impl Policy {
    /// What is reached beside the public internet: these networks, without TLS those of the machine itself.
    pub fn within(networks: Networks) -> Self {
        Self { plain_loopback: networks.hold_loopback(), networks, roots: Vec::new() }
    }
}

/// Fetches the document at a URL.
///
/// # Errors
/// [`Failure`]; every status but 200 is one.
pub async fn get(url: &str, limits: Limits, policy: &Policy) -> Result<Vec<u8>, Failure> {
    match request(url, None, limits, policy, None).await? {
        HostAnswer { status: StatusCode::OK, document, .. } => Ok(document),
        HostAnswer { status, .. } => Err(Failure::Status(status.as_u16())),
    }
}

/// What is sent. It may be secret, and is not printed.
#[derive(Clone)]
pub struct PostBody {
    /// Its method. GET has no body.
    pub method: Method,
    /// Its media type.
    pub media_type: &'static str,
    /// The text.
    pub text: String,
    /// By what this server proves who it is (RFC 6750).
    pub bearer: Option<Secret>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Whether the answer's body is read also where it refuses.
    pub reads_refusals: bool,
}

impl PostBody {
    /// Nothing but headers: a GET.
    pub fn none() -> Self {
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
        Self { method, media_type, text, bearer: None, headers: Vec::new(), reads_refusals: false }
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
    request(url, Some(body), limits, policy, None).await.map(|answer| answer.status.as_u16())
}

/// Delivers something to a URL: the status of the answer, and after how many seconds the receiver wants to be asked again. The
/// answer's body is dropped. A connection may be one that is kept for this owner, on which the same may be sent once more where
/// its host closed it.
///
/// # Errors
/// [`Failure`]
pub async fn deliver(
    _: Permission,
    url: &str,
    body: PostBody,
    limits: Limits,
    policy: &Policy,
    kept: (&Connections, u128),
) -> Result<(u16, Option<i64>), Failure> {
    let answer = request(url, Some(body), limits, policy, Some(kept)).await?;
    Ok((answer.status.as_u16(), answer.retry_after))
}

/// Posts a form to a URL; the answer's status and body, also where it refuses.
///
/// # Errors
/// [`Failure`]
pub async fn exchange(
    url: &str,
    form: String,
    limits: Limits,
    policy: &Policy,
) -> Result<(u16, Vec<u8>), Failure> {
    ask(url, PostBody { reads_refusals: true, ..PostBody::form(form) }, limits, policy).await
}

/// Posts a request that notifies nobody, such as a token request. Returns the status of the answer, and its body if it is read.
///
/// # Errors
/// [`Failure`]
pub async fn ask(
    url: &str,
    body: PostBody,
    limits: Limits,
    policy: &Policy,
) -> Result<(u16, Vec<u8>), Failure> {
    let answer = request(url, Some(body), limits, policy, None).await?;
    Ok((answer.status.as_u16(), answer.document))
}

/// What a host answered.
struct HostAnswer {
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
    kept: Option<(&Connections, u128)>,
) -> Result<HostAnswer, Failure> {
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
        let reads_refusals = body.as_ref().is_some_and(|body| body.reads_refusals);
        let request = prepare(&url, body)?;
        let kept =
            kept.map(|(connections, owner)| (connections, (owner, url[..Position::BeforePath].to_owned())));
        let idle = kept.as_ref().and_then(|(connections, key)| connections.take(key, &addresses));
        let (connection, answer) =
            converse(idle, Connection::open(&addresses, secure, time), request).await?;
        let told = HostAnswer::of(&answer);
        if let Some((connections, key)) = kept {
            connections.keep(key, connection, (answer, limits.bytes)).await;
            return Ok(told);
        }
        let is_read = told.status.is_success() || reads_refusals;
        let document = if is_read { read(answer, limits.bytes).await? } else { Vec::new() };
        Ok(HostAnswer { document, ..told })
    };
    timeout(time, fetching).await.unwrap_or(Err(Failure::TimedOut))
}

/// Asks on a connection that was kept, or on a new one. That its host closed it meanwhile is no failure.
async fn converse(
    kept: Option<Connection>,
    open: impl Future<Output = Result<Connection, Failure>>,
    request: Request<Full<Bytes>>,
) -> Result<(Connection, Response<Incoming>), Failure> {
    if let Some(mut connection) = kept
        && let Ok(answer) = connection.ask(request.clone()).await
    {
        return Ok((connection, answer));
    }
    let mut connection = open.await?;
    let answer = connection.ask(request).await?;
    Ok((connection, answer))
}

impl HostAnswer {
    /// What an answer says before its body.
    fn of(answer: &Response<Incoming>) -> Self {
        let after = answer.headers().get(RETRY_AFTER);
        let retry_after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        Self { status: answer.status(), retry_after, document: Vec::new() }
    }
}

/// The addresses of a URL's host that are allowed.
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

/// The addresses of a host, a name or an IP address, that are of the public internet or of these networks.
/// Connect to one of them and to nothing else: a second look-up could answer another address.
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

/// The request to a URL.
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

/// Reads the body of an answer.
async fn read(mut answer: Response<Incoming>, limit: usize) -> Result<Vec<u8>, Failure> {
    // a declared length is refused before the body is fetched
    if answer.body().size_hint().lower() > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Failure::TooLarge);
    }
    let mut document = Vec::new();
    while let Some(frame) = answer.frame().await {
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
