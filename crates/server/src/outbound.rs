//! Requests to servers that administrators name, within the networks that the operator allows.

use std::sync::Arc;

use chancery_fetch::{Limits, Networks, Policy, PostBody, send_request};
use chancery_resource::{OutboundRequest, SendOutbound};

/// The bounds of an answer.
const LIMITS: Limits = Limits { bytes: 256 << 10, seconds: 5 };

/// The client of these requests: https to the public internet and to these networks; http to this machine, if they hold it.
pub fn requester(networks: Networks) -> SendOutbound {
    let policy = Arc::new(Policy::within(networks));
    Arc::new(move |request: OutboundRequest| {
        let policy = Arc::clone(&policy);
        Box::pin(async move {
            let headers = request.authorization.into_iter().map(|value| ("authorization".to_owned(), value));
            let headers: Vec<_> = headers.collect();
            let body = match request.form {
                Some(form) => PostBody { reads_error_body: true, headers, ..PostBody::form(form) },
                None => PostBody { headers, ..PostBody::get() },
            };
            send_request(&request.url, body, LIMITS, &policy).await.map_err(|failure| failure.to_string())
        })
    })
}
