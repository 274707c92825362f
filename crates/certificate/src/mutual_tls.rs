//! The names of a client certificate, for clients that authenticate by TLS (RFC 8705).

use std::net::IpAddr;

use x509_parser::extensions::GeneralName;

use crate::{Part, UploadRefusal, facts::parse, name::DistinguishedName};

/// The names that a certificate has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The subject in the text of RFC 4514; empty when there is none.
    pub subject: String,
    /// Host names.
    pub dns: Vec<String>,
    /// URIs.
    pub uri: Vec<String>,
    /// IP addresses.
    pub ip: Vec<IpAddr>,
    /// E-mail addresses.
    pub email: Vec<String>,
}

impl Names {
    /// Whether the host is among the names, without regard to case. A `*` is no wildcard.
    pub fn has_dns(&self, expected: &str) -> bool {
        self.dns.iter().any(|name| name.eq_ignore_ascii_case(expected))
    }

    /// Whether the URI is among the names, letter by letter.
    pub fn has_uri(&self, expected: &str) -> bool {
        self.uri.iter().any(|name| name == expected)
    }

    /// Whether the IP address is among the names, in any notation.
    pub fn has_ip(&self, expected: &str) -> bool {
        expected.parse().is_ok_and(|expected| self.ip.contains(&expected))
    }

    /// Whether the e-mail address is among the names, letter by letter.
    pub fn has_email(&self, expected: &str) -> bool {
        self.email.iter().any(|name| name == expected)
    }
}

/// Reads the names of a certificate in DER. Alternative names that cannot be read are left out.
pub fn names_of(der: &[u8]) -> Result<Names, UploadRefusal> {
    let broken = UploadRefusal::Broken(Part::Certificate);
    let certificate = parse(der)?;
    let subject = DistinguishedName::from_der(certificate.subject().as_raw()).ok_or(broken)?.to_text();
    let mut names = Names { subject, ..Names::default() };
    // more than one such extension is an error, and one that cannot be parsed counts as absent
    let Some(alternative) = certificate.subject_alternative_name().map_err(|_| broken)? else {
        return Ok(names);
    };
    for name in &alternative.value.general_names {
        match name {
            GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
            GeneralName::URI(name) => names.uri.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => names.email.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
                names.ip.extend(four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from)));
            }
            _ => {}
        }
    }
    Ok(names)
}

/// Whether the subject of a certificate in DER is the name that is written in the text of RFC 4514.
///
/// Names are the same when their parts are, in their order: types by their meaning, whether keyword or
/// object identifier, in any case; values letter by letter, once decoded. An empty subject matches no name,
/// and text that is no name matches no subject.
pub fn matches_subject(expected: &str, der: &[u8]) -> Result<bool, UploadRefusal> {
    let certificate = parse(der)?;
    let subject = DistinguishedName::from_der(certificate.subject().as_raw())
        .ok_or(UploadRefusal::Broken(Part::Certificate))?;
    Ok(!subject.is_empty() && DistinguishedName::from_text(expected) == Some(subject))
}
