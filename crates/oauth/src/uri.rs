//! The parts of a URI on which rules depend.

/// The host of a URI, in lower case.
pub fn host_of(uri: &str) -> Option<String> {
    let authority = uri.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next()?,
        None => host.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

/// Whether a URI has a scheme.
pub fn has_scheme(uri: &str, scheme: &str) -> bool {
    uri.split_once(':').is_some_and(|(own, _)| own.eq_ignore_ascii_case(scheme))
}
