//! Browsers in which a person does not need a second factor (`RememberDeviceLifetime`).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_flow::Identified;
use chancery_resource::{Context, MasterKey, StateTable, StoreError, Tx, random};

/// The cookie value of a remembered browser, and its stored digest.
#[derive(Clone)]
pub struct Device {
    /// The value.
    pub value: String,
    /// Its digest.
    pub digest: Vec<u8>,
}

impl Device {
    /// The cookie value from a browser.
    pub fn of(master: &MasterKey, value: String) -> Self {
        let digest = master.digest("remembered-device", value.as_bytes());
        Self { value, digest }
    }
}

/// Remembers a browser of a person for so many milliseconds. Returns its cookie.
pub fn remember(
    context: &Context,
    tx: &mut Tx<'_>,
    identified: &Identified,
    lifetime_ms: i64,
) -> Result<Device, StoreError> {
    let device = Device::of(&context.app.master, BASE64_URL_SAFE_NO_PAD.encode(random::<32>()));
    let text = StateTable::RememberedDevice
        .insert("(digest, person_id, tenant_id, expires_on) VALUES (?1, ?2, ?3, ?4)");
    let until = context.now.plus(lifetime_ms).0.into();
    tx.queue(
        &text,
        vec![device.digest.clone().into(), identified.person.into(), identified.tenant.into(), until],
    )?;
    Ok(device)
}
