//! The OpenID provider: sign-ins in progress, sessions, codes and grants.
//!
//! `chancery_flow` decides the next step of a sign-in; `chancery_oauth` parses and validates requests. This crate
//! reads the data that both need from the database and writes the results. HTTP is handled by `chancery_web`.

mod appearance;
mod claims;
mod client_app;
mod console;
mod device_polls;
mod diagnosis;
mod endpoints;
mod external;
mod flow;
mod grant;
mod metrics;
mod pages;
mod person;
mod preview;
mod provider;
mod second_factor;
mod session;
mod tokens;

pub use appearance::{Appearance, Appearances, Asset, Owners};
pub use chancery_management::idp_instance::connection::Documents as ProviderDocuments;
pub use chancery_oauth::STANDARD_SCOPES;
pub use client_app::{
    Applications,
    acr::{ACR, is_at_least},
    console_path::CONSOLE_RETURN,
};
pub use console::{
    entry::ConsoleEntry,
    preference::{ConsolePreference, console_preference, store_console_preference},
    session::{
        ConsoleLifetimes, ConsoleSession, USE_MS as CONSOLE_USE_MS, console_digest, console_names,
        end_console_session, find_console_session, note_console_use,
    },
    setup_link::{is_setup_open, open_setup, spend_setup},
};
pub use device_polls::DevicePolls;
pub use diagnosis::{
    refused_requests::{RefusedKind, RefusedRequest, RefusedRequests, write_refused},
    registered_settings::Registered,
};
pub use endpoints::{
    authorize::LONGEST_QUERY,
    end_session::{SignOutResponse, SignOutResult, SignedOut},
    presented_refresh_token::shows_refresh_token,
    token::{GRANT_TYPES, GrantType},
    userinfo::{LACKS_OPENID, UserInfoRefusal},
};
pub use external::flow_of_state;
pub use flow::{
    page_name::{ACCESS_PASS, CONTINUE, DEVICE, EXTERNAL, PASSWORD, SIGN_OUT, SIGNED_OUT},
    pending_flow::{IN_ROW, PendingFlow},
    response::{AttemptResult, BrowserResponse, NewSession, Page, PageError},
};
pub use grant::claim_scope::{person_claims, platform_claims};
pub use metrics::Counts;
pub use pages::{
    Attempt, Posted, SignInPage,
    device::enter_page,
    form::Form,
    password::LONGEST as LONGEST_SECRET,
    reset::{RESET, RESET_PATH, ResetLink, ResetRequest, ResetScope, reset_page},
};
pub use person::own_user::{OwnPasskey, OwnUser, own_user, platform_user};
pub use preview::preview_tokens;
pub use provider::{Provider, Visit};
pub use session::{
    own_sessions::{OwnSession, SessionsToEnd, end_own_sessions, own_sessions},
    sign_in_record::Origin,
};
pub use tokens::backchannel_logout::SignOutDeliveries;
