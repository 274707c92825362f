//! One bounded request, within a policy of destinations: a document is fetched, or a form is sent.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use chancery_record::Secret;
use http::{
    Method, Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body as _, Bytes},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    task::JoinSet,
    time::timeout,
};
use url::{Host, Position, Url};

use crate::{Failure, Networks, tls};

const MAX_URL: usize = 2_048;
const MAX_HEAD: usize = 64 * 1024;

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
    /// Whether `http` is allowed, to loopback addresses only: for tests and development.
    pub plain_loopback: bool,
    /// Root certificates (DER) that are trusted beside the system's; one that cannot be read is left out.
    pub roots: Vec<Vec<u8>>,
}

/// Fetches the document at a URL.
///
/// # Errors
/// [`Failure`]; every status but 200 is one.
pub async fn get(url: &str, limits: Limits, policy: &Policy) -> Result<Vec<u8>, Failure> {
    match request(url, None, limits, policy).await? {
        HostAnswer { status: StatusCode::OK, document, .. } => Ok(document),
        HostAnswer { status, .. } => Err(Failure::Status(status.as_u16())),
    }
}

/// What is posted. It may be secret, and is not printed.
#[derive(Clone)]
pub struct PostBody {
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
    /// Whether the answer's body is not read at all.
    pub ignores_answer: bool,
}

impl PostBody {
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
        Self {
            media_type,
            text,
            bearer: None,
            headers: Vec::new(),
            reads_refusals: false,
            ignores_answer: false,
        }
    }
}

/// Posts to a URL; the status of the answer, whose body is read within the limits and not looked at.
///
/// # Errors
/// [`Failure`]
pub async fn post(url: &str, body: PostBody, limits: Limits, policy: &Policy) -> Result<u16, Failure> {
    request(url, Some(body), limits, policy).await.map(|answer| answer.status.as_u16())
}

/// Delivers something to a URL: the status of the answer, and after how many seconds the receiver wants to be asked again. The
/// answer's body is not read.
///
/// # Errors
/// [`Failure`]
pub async fn deliver(
    url: &str,
    body: PostBody,
    limits: Limits,
    policy: &Policy,
) -> Result<(u16, Option<i64>), Failure> {
    let body = PostBody { ignores_answer: true, ..body };
    let answer = request(url, Some(body), limits, policy).await?;
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
    let body = PostBody { reads_refusals: true, ..PostBody::form(form) };
    let answer = request(url, Some(body), limits, policy).await?;
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
        let tcp = connect(&addresses(&url, is_plain, policy).await?, time).await?;
        let stream: Box<dyn Stream> = if is_plain {
            Box::new(tcp)
        } else {
            let host = url.host().ok_or(Failure::Url)?;
            Box::new(tls::secure(tcp, &host, &policy.roots).await?)
        };
        ask(stream, &url, body, limits.bytes).await
    };
    timeout(time, fetching).await.unwrap_or(Err(Failure::TimedOut))
}

/// The addresses of a URL's host that are allowed.
async fn addresses(url: &Url, is_plain: bool, policy: &Policy) -> Result<Vec<SocketAddr>, Failure> {
    let port = url.port_or_known_default().ok_or(Failure::Url)?;
    let host = match url.host().ok_or(Failure::Url)? {
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
        Host::Domain(name) => name.to_owned(),
    };
    let admit =
        |address: IpAddr| if is_plain { address.is_loopback() } else { policy.networks.admit(address) };
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

/// Connects to the first address that answers. Each gets a share of the time, so that a silent one leaves
/// time for the others.
async fn connect(addresses: &[SocketAddr], time: Duration) -> Result<TcpStream, Failure> {
    let shares = u32::try_from(addresses.len()).unwrap_or(u32::MAX).saturating_add(1);
    for address in addresses {
        if let Ok(Ok(tcp)) = timeout(time / shares, TcpStream::connect(address)).await {
            return Ok(tcp);
        }
    }
    Err(Failure::Connect)
}

/// A connection with or without TLS: of one type, so that the code of the protocol is there once.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

async fn ask(
    stream: Box<dyn Stream>,
    url: &Url,
    body: Option<PostBody>,
    limit: usize,
) -> Result<HostAnswer, Failure> {
    let mut request = Request::builder().uri(&url[Position::BeforePath..Position::AfterQuery]);
    let reads_refusals = body.as_ref().is_some_and(|body| body.reads_refusals);
    let ignores_answer = body.as_ref().is_some_and(|body| body.ignores_answer);
    let mut text = String::new();
    if let Some(body) = body {
        request = request.method(Method::POST).header(CONTENT_TYPE, body.media_type);
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
    let request = request
        .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
        .header(USER_AGENT, concat!("chancery/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "*/*")
        .body(Full::new(Bytes::from(text)))
        .map_err(|_| Failure::Url)?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| Failure::Broken)?;
    // dropped with this future, so that the connection ends when the time is up
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let mut answer = sender.send_request(request).await.map_err(|_| Failure::Broken)?;
    let status = answer.status();
    let retry_after = answer.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    if ignores_answer || (!status.is_success() && !reads_refusals) {
        return Ok(HostAnswer { status, retry_after, document: Vec::new() });
    }
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
    Ok(HostAnswer { status, retry_after, document })
}
