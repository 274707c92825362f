//! Client authentication by certificates (RFC 8705).

use std::{os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use chancery_testkit::{Database, Engine, Process};
use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use super::read;
use crate::id;

/// A certificate with its key, as files.
struct CertificateFiles {
    folder: std::path::PathBuf,
    name: &'static str,
    der: Vec<u8>,
}

impl CertificateFiles {
    fn write(folder: &Path, name: &'static str, certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        let private = folder.join(format!("{name}.key"));
        std::fs::write(&private, key.serialize_pem()).unwrap();
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
        Self { folder: folder.to_owned(), name, der: certificate.der().to_vec() }
    }

    fn arguments(&self) -> Vec<String> {
        let file = |end: &str| self.folder.join(format!("{}.{end}", self.name)).display().to_string();
        vec!["--cert".into(), file("pem"), "--key".into(), file("key")]
    }
}

/// The alternative names of a certificate, one of each type.
fn names(host: &str, name: &str) -> Vec<SanType> {
    let (uri, email) = (format!("https://{host}/"), format!("{name}@example.com"));
    vec![
        SanType::DnsName(host.try_into().unwrap()),
        SanType::URI(uri.as_str().try_into().unwrap()),
        SanType::Rfc822Name(email.as_str().try_into().unwrap()),
        SanType::IpAddress([192, 0, 2, u8::from(name == "good")].into()),
    ]
}

/// Sends a request by curl, which speaks TLS; returns the status and the body.
fn call(certificate: Option<&CertificateFiles>, arguments: &[&str]) -> (u16, Value) {
    let mut command = Command::new("curl");
    command.args(["-sk", "-w", "\n%{http_code}"]).args(arguments);
    if let Some(certificate) = certificate {
        command.args(certificate.arguments());
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

/// - Effect of `ClientAppAuthenticationConfiguration.requireCertificateBoundAccessTokens`: Access tokens of the app are valid only with its
///   certificate.
/// - Effect of `ClientAppAuthenticationConfiguration.tlsClientAuthSanDns`: A trusted certificate with this DNS name authenticates the app.
/// - Effect of `ClientAppAuthenticationConfiguration.tlsClientAuthSanEmail`: A trusted certificate with this mail address authenticates the
///   app.
/// - Effect of `ClientAppAuthenticationConfiguration.tlsClientAuthSanIp`: A trusted certificate with this IP address authenticates the app.
/// - Effect of `ClientAppAuthenticationConfiguration.tlsClientAuthSanUri`: A trusted certificate with this URI authenticates the app.
/// - Effect of `ClientAppAuthenticationConfiguration.tlsClientAuthSubjectDn`: A trusted certificate with this subject authenticates the
///   app.
#[tokio::test(flavor = "multi_thread")]
async fn clients_authenticate_by_certificates() {
    let database = Database::create(Engine::Sqlite);
    let folder = database.folder();
    let server_key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&server_key).unwrap();
    CertificateFiles::write(&folder, "server", &server, &server_key);
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(DnType::CommonName, "the authority");
    let other_authority =
        CertifiedIssuer::self_signed(authority.clone(), KeyPair::generate().unwrap()).unwrap();
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.join("authority.pem"), authority.pem()).unwrap();
    let issue = |name: &'static str, host: &str, issuer: &CertifiedIssuer<'_, KeyPair>| {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec![]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, host);
        parameters.subject_alt_names = names(host, name);
        parameters.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ClientAuth);
        let certificate = parameters.signed_by(&key, issuer).unwrap();
        CertificateFiles::write(&folder, name, &certificate, &key)
    };
    let good = issue("good", "client.example.com", &authority);
    let other = issue("other", "other.example.com", &authority);
    let forged = issue("forged", "client.example.com", &other_authority);
    let file = |name: &str| folder.join(name).display().to_string();
    let environment = [
        ("CHANCERY_TLS_CERTIFICATE", file("server.pem")),
        ("CHANCERY_TLS_KEY", file("server.key")),
        ("CHANCERY_TLS_CLIENT_CA", file("authority.pem")),
    ];
    let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
    let server = Process::start_unready(&database, &environment);
    let base = server.base.as_str();
    let endpoint = format!("{base}/connect/token");
    let (_, root) =
        call(None, &["-u", "root:a-secret-for-processes", "-d", "grant_type=client_credentials", &endpoint]);
    let bearer = format!("Authorization: Bearer {}", root["access_token"].as_str().unwrap());
    let make = |resource: &str, body: Value| {
        let url = format!("{base}/api/management/v2/{resource}");
        let json = "Content-Type: application/json";
        let (status, created) = call(None, &["-H", &bearer, "-H", json, "-d", &body.to_string(), &url]);
        assert_eq!(status, 201, "{created}");
        created
    };
    let (_, discovery) = call(None, &[&format!("{base}/.well-known/openid-configuration")]);
    assert_eq!(discovery["tls_client_certificate_bound_access_tokens"], true);
    let app = |name: &str, configuration: Value| {
        let app = make("ClientApp", json!({ "name": name, "allowClientCredentialLogin": true }));
        let mut body = configuration;
        body["clientAppId"] = app["id"].clone();
        make("ClientAppAuthenticationConfiguration", body);
        make("ClientAppRole", json!({ "clientAppId": app["id"], "roleType": "SystemAdmin" }));
        app
    };
    let ask = |certificate: Option<&CertificateFiles>, app: &Value| {
        let form = format!("grant_type=client_credentials&client_id={}", id(app));
        call(certificate, &["-d", &form, &endpoint])
    };
    let named = app(
        "named",
        json!({
            "tokenEndpointAuthMethod": "tls_client_auth", "tlsClientAuthSanDns": "client.example.com",
            "requireCertificateBoundAccessTokens": true,
        }),
    );
    for (certificate, status) in [(Some(&good), 200), (Some(&other), 401), (Some(&forged), 401), (None, 401)]
    {
        assert_eq!(ask(certificate, &named).0, status);
    }
    // each type of name identifies a certificate
    for (member, value) in [
        ("tlsClientAuthSubjectDn", "CN=client.example.com"),
        ("tlsClientAuthSanUri", "https://client.example.com/"),
        ("tlsClientAuthSanIp", "192.0.2.1"),
        ("tlsClientAuthSanEmail", "good@example.com"),
    ] {
        let by_name = app(member, json!({ "tokenEndpointAuthMethod": "tls_client_auth", (member): value }));
        for (certificate, status) in [(Some(&good), 200), (Some(&other), 401), (None, 401)] {
            assert_eq!(ask(certificate, &by_name).0, status, "{member}");
        }
    }
    // a certificate-bound token is not usable with another certificate, or without one
    let (_, grant) = ask(Some(&good), &named);
    let token = grant["access_token"].as_str().unwrap();
    assert!(read(token).1["cnf"]["x5t#S256"].is_string());
    let bearer_of = format!("Authorization: Bearer {token}");
    let users = format!("{base}{}", super::USERS);
    for (certificate, status) in [(Some(&good), 200), (Some(&other), 401), (None, 401)] {
        assert_eq!(call(certificate, &["-H", &bearer_of, &users]).0, status);
    }
    // a client app's own certificate, whoever signed it
    let own = app("own", json!({ "tokenEndpointAuthMethod": "self_signed_tls_client_auth" }));
    assert_eq!(ask(Some(&forged), &own).0, 401);
    make(
        "ClientAppKeySet",
        json!({
            "clientAppId": own["id"], "use": "Signing", "status": "Active",
            "certificate": BASE64_STANDARD.encode(&forged.der),
        }),
    );
    for (certificate, status) in [(Some(&forged), 200), (Some(&good), 401), (None, 401)] {
        assert_eq!(ask(certificate, &own).0, status);
    }
}
