//! Ranges of IP addresses of a tenant.

use std::net::IpAddr;

use chancery_record::{FIXED, KEY, Name, OPEN, SHOWN, Token, id_types, record};
use chancery_resource::{
    Action as A, Custom, Findings, Method as M, Op, Parent, Permit::TenantMember, ProvidedFields, Reach,
    Rules, Shape, Unique, added, list_of, standard,
};

use crate::tenant::{TENANT, TenantId};

id_types! {
    /// The id of a range.
    IpAddressRangeId
}

record! {
    /// A range of IP addresses that belongs to a tenant.
    #[de("Adressbereich", "Adressbereiche", "Ein Bereich von IP-Adressen, der zu einem Mandanten gehört.")]
    pub struct IpAddressRange {
        /// The range.
        id: IpAddressRangeId = KEY,
        /// Its first address.
        #[de("Von Adresse")]
        lower: Name = OPEN.like("192.0.2.0"),
        /// Its last address, of the same family and not below the first.
        #[de("Bis Adresse", "Die letzte Adresse, von derselben Art und nicht unter der ersten.")]
        upper: Name = OPEN.like("192.0.2.255"),
        /// The tenant.
        tenant_id: TenantId = FIXED,
        /// Concurrency token. It changes with every write to the range.
        concurrency_token: Token = SHOWN,
    }
}

impl Rules for IpAddressRange {
    /// Brings the addresses into their shortest form.
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        for end in [&mut self.lower, &mut self.upper] {
            let plain = end.as_str().parse::<IpAddr>().map(|address| address.to_string());
            if let Some(plain) = plain.ok().and_then(|text| Name::new(text).ok()) {
                *end = plain;
            }
        }
    }

    fn check(&self, wrong: &mut Findings) {
        let ends = [(Self::LOWER, &self.lower), (Self::UPPER, &self.upper)];
        let [lower, upper] = ends.map(|(field, end)| {
            let address = end.as_str().parse::<IpAddr>().ok();
            if address.is_none() {
                wrong.add(field, "must be an IP address");
            }
            address
        });
        let (Some(lower), Some(upper)) = (lower, upper) else { return };
        if lower.is_ipv4() != upper.is_ipv4() {
            wrong.add(Self::UPPER, "must be of the same family as lower");
        } else if lower > upper {
            wrong.add(Self::UPPER, "must not be below lower");
        }
    }
}

/// The shape of IP address ranges.
pub static IP_ADDRESS_RANGE: Shape = Shape::of::<IpAddressRange>(
    "IpAddressRange",
    "ip_address_range",
    Reach::Of(IpAddressRange::TENANT_ID.field(), &TENANT),
)
.belonging(&[Parent::new(IpAddressRange::TENANT_ID, &TENANT).open()])
.unique(&[Unique::new("ip_address_range__id", &[IpAddressRange::ID.field()])])
.ruled::<IpAddressRange>()
.bumps_epoch();

/// The operations on IP address ranges.
pub static OPERATIONS: [Op; 9] =
    added(standard!("IpAddressRange", "/IpAddressRange", TenantMember, SubscriptionAdmin, &IP_ADDRESS_RANGE));
/// Operations on IP address ranges beyond the standard ones.
pub static LOOK_UPS: &[Op] = &[Op::new(
    "GetIpAddressRangesByTenant",
    M::Get,
    "/IpAddressRange/tenant/{tenantId}",
    TenantMember,
    &IP_ADDRESS_RANGE,
    A::Custom(Custom::listing(|call, tx| list_of(call, tx, &TENANT, 0, IpAddressRange::TENANT_ID))),
    "Lists the ranges of a tenant.",
)
.added()];
