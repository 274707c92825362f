//! Sends one mail over one connection (RFC 5321).

use std::{net::SocketAddr, time::Duration};

use chancery_fetch::{Permission, resolve};
use lettre::transport::smtp::{
    Error,
    client::{AsyncSmtpConnection, Certificate, TlsParameters},
    commands::Ehlo,
    extension::ClientId,
};
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    MailServer, capabilities::Capabilities, compose::ComposedMessage, failure::Failure,
    uppercase::UppercaseReplies,
};

/// How long the server may take to answer `QUIT`; it has accepted the mail by then.
const FAREWELL: Duration = Duration::from_secs(1);
/// Sends a mail within the server's timeout, and not beyond `end`. Sent means that the server accepted it.
///
/// A refusal of the mail itself with 5xx is final. A refusal before it - of the greeting, of the certificate,
/// of the password - is due to the configuration, which can be repaired.
pub async fn send(
    _: Permission,
    server: &MailServer,
    message: &ComposedMessage,
    end: Instant,
) -> Result<(), Failure> {
    let end = end.min(Instant::now() + server.timeout);
    match timeout_at(end, transmit(server, message)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failure::Transient("the mail server did not answer in time".to_owned())),
    }
}

async fn transmit(server: &MailServer, message: &ComposedMessage) -> Result<(), Failure> {
    let addresses = resolve(&server.host, server.port, &server.networks).await;
    let addresses = addresses.map_err(|refusal| Failure::Transient(format!("the mail server: {refusal}")))?;
    let (mut connection, capabilities) = connect(server, &addresses, &message.domain).await?;
    capabilities.send(&mut connection, message).await?;
    let _ = timeout(FAREWELL, connection.quit()).await;
    Ok(())
}

/// Connects to one of the checked addresses, performs the TLS handshake with the host, and logs in.
async fn connect(
    server: &MailServer,
    addresses: &[SocketAddr],
    domain: &str,
) -> Result<(AsyncSmtpConnection, Capabilities), Failure> {
    let hello = ClientId::Domain(domain.to_owned());
    let mut connection = if server.tls_from_start {
        let tls = tls(server).await.map_err(|error| Failure::transient(&error))?;
        AsyncSmtpConnection::connect_tokio1(addresses, Some(server.timeout), &hello, Some(tls), None).await
    } else {
        let stream = TcpStream::connect(addresses).await;
        let stream = stream.map_err(|error| Failure::Transient(format!("Connection error: {error}")))?;
        AsyncSmtpConnection::connect_with_transport(Box::new(UppercaseReplies::new(stream)), &hello).await
    }
    .map_err(|error| Failure::transient(&error))?;
    if connection.can_starttls() {
        let tls = tls(server).await.map_err(|error| Failure::transient(&error))?;
        connection.starttls(tls, &hello).await.map_err(|error| Failure::transient(&error))?;
    }
    let response = connection.command(Ehlo::new(hello)).await.map_err(|error| Failure::transient(&error))?;
    let capabilities = Capabilities::of(&response);
    if let Some((user, password)) = &server.credentials {
        let password = String::from_utf8_lossy(password.expose()).into_owned();
        capabilities.log_in(&mut connection, user, &password).await?;
    }
    Ok((connection, capabilities))
}

/// The TLS parameters. They trust the operating system's roots, whose reading blocks the thread.
async fn tls(server: &MailServer) -> Result<TlsParameters, Error> {
    let (host, root) = (server.host.clone(), server.extra_root.clone());
    let span = tracing::Span::current();
    let parameters = tokio::task::spawn_blocking(move || {
        let _logging = span.enter();
        let mut builder = TlsParameters::builder(host);
        if let Some(root) = root {
            builder = builder.add_root_certificate(Certificate::from_der(root)?);
        }
        builder.build_rustls()
    });
    // the blocking task is cancelled when the runtime ends: read the roots here instead
    parameters.await.unwrap_or_else(|_| TlsParameters::new_rustls(server.host.clone()))
}
