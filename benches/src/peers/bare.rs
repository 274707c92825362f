//! A bare HTTP/1.1 server: `GET /1234` answers 1,234 constant bytes, `POST /1234` and `PATCH /1234`
//! read the body first. It is the least that any server on the same libraries must cost.

use std::{convert::Infallible, net::SocketAddr};

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::fault::Result;

/// The longest body that it answers.
const LONGEST: usize = 1 << 20;
static BODY: [u8; LONGEST] = [b'x'; LONGEST];

/// Serves until it is killed.
pub async fn serve(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)));
    }
}

async fn answer(request: Request<Incoming>) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let length: usize = path.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    let status = match *request.method() {
        http::Method::POST => StatusCode::CREATED,
        http::Method::PATCH => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    if status != StatusCode::OK {
        let _ = request.into_body().collect().await;
    }
    let body = Bytes::from_static(BODY.get(..length).unwrap_or(&BODY));
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
