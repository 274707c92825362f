//! Made-up people and groups: everything about number `n` follows from `n`, so that requests need no list of them.

use uuid::Uuid;

/// The creation time of the first person: milliseconds since 1970.
const BEGIN: u64 = 1_700_000_000_000;

/// The number of the big group.
pub const BIG_GROUP: u64 = 0;
/// The most members of the big group.
pub const BIG_GROUP_MEMBERS: u64 = 100_000;

/// The password of everybody who has one.
pub const PASSWORD: &str = "four lively grey herons";

const FIRST_NAMES: [&str; 48] = [
    "Ada",
    "Agnes",
    "Ahmed",
    "Alan",
    "Alice",
    "Amara",
    "Anton",
    "Barbara",
    "Bela",
    "Carl",
    "Chen",
    "Clara",
    "Daniel",
    "Dorothy",
    "Edsger",
    "Elena",
    "Emil",
    "Fatima",
    "Felix",
    "Frances",
    "Grace",
    "Hannah",
    "Hedwig",
    "Ida",
    "Ivan",
    "Jean",
    "John",
    "Jorge",
    "Karen",
    "Katherine",
    "Kenji",
    "Lars",
    "Lena",
    "Leslie",
    "Margaret",
    "Maria",
    "Mehmet",
    "Niklaus",
    "Noor",
    "Olga",
    "Peter",
    "Priya",
    "Radia",
    "Sofia",
    "Tim",
    "Ursula",
    "Yuki",
    "Zoe",
];
const BEGINNINGS: [&str; 40] = [
    "Ab", "Al", "An", "Ar", "Ba", "Be", "Bo", "Br", "Ca", "Co", "Da", "De", "Du", "Ed", "Fa", "Fi", "Ga",
    "Go", "Ha", "He", "Ho", "Ja", "Ka", "Ko", "La", "Le", "Ma", "Me", "Mi", "Mo", "Na", "Ol", "Pa", "Ra",
    "Ro", "Sa", "Sch", "St", "Va", "We",
];
const MIDDLES: [&str; 24] = [
    "ber", "bel", "car", "der", "din", "far", "gen", "ger", "kel", "ler", "lin", "man", "mer", "nan", "nel",
    "ran", "ren", "rin", "sen", "ser", "tel", "ter", "van", "wer",
];
const ENDS: [&str; 20] = [
    "", "a", "berg", "dahl", "dson", "e", "er", "feld", "hart", "i", "mann", "o", "ova", "s", "sen", "ski",
    "son", "stein", "thal", "witz",
];
const HOSTS: [&str; 5] = ["example.com", "example.org", "mail.example", "works.example", "school.example"];

/// A random number generator with the same sequence every time (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `bound`.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn choose(&mut self, from: &[&'static str]) -> &'static str {
        let index = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(index).copied().unwrap_or_default()
    }
}

/// A made-up person.
#[derive(Clone, Debug)]
pub struct Person {
    /// The id.
    pub id: Uuid,
    /// The login name.
    pub login_name: String,
    /// The given name.
    pub first_name: &'static str,
    /// The family name: one of about 19,000.
    pub last_name: String,
    /// The e-mail address.
    pub email_address: String,
    /// The telephone number.
    pub phone_number: String,
    /// The concurrency token.
    pub concurrency_token: String,
}

/// An id that sorts by `time`, like those that the server assigns.
fn id(time: u64, random: &mut Random) -> Uuid {
    let low = u128::from(random.next()) | (u128::from(random.next()) << 64);
    let random_bits = low & 0x0fff_3fff_ffff_ffff_ffff;
    let version = (0x7_u128 << 76) | (0b10_u128 << 62);
    Uuid::from_u128((u128::from(time & 0xffff_ffff_ffff) << 80) | version | random_bits)
}

/// The id of a user.
pub fn user_id(number: u64) -> Uuid {
    id(BEGIN + number, &mut Random::new(number))
}

/// The id of a group.
pub fn group_id(number: u64) -> Uuid {
    id(BEGIN + number, &mut Random::new(number | (1 << 62)))
}

/// The id of the platform user who is this user.
pub fn platform_user_id(number: u64) -> Uuid {
    id(BEGIN + number, &mut Random::new(number | (1 << 61)))
}

/// The id of that platform user's identity.
pub fn identity_id(number: u64) -> Uuid {
    id(BEGIN + number, &mut Random::new(number | (1 << 60)))
}

/// The id of the user's session.
pub fn session_id(number: u64) -> Uuid {
    id(BEGIN + number, &mut Random::new(number | (1 << 59)))
}

/// The value of the cookie of the user's session, as long as those that the server makes.
pub fn session_cookie(number: u64) -> String {
    format!("session-{number:0>35}")
}

/// The login name of a user.
pub fn login_name(number: u64) -> String {
    let mut random = Random::new(number ^ 0x5555_0000_0000);
    format!("{}.{number}", random.choose(&FIRST_NAMES).to_ascii_lowercase())
}

/// A seeded user, by number.
pub fn person(number: u64) -> Person {
    build_person(number, user_id(number), login_name(number))
}

/// A user who is not seeded; the number is a time in microseconds.
pub fn new_person(number: u64) -> Person {
    let mut random = Random::new(number ^ 0x7777_0000_0000_0000);
    let login_name = format!("{}.new.{number:x}", random.choose(&FIRST_NAMES).to_ascii_lowercase());
    let id = id(number / 1000, &mut Random::new(number ^ 0x6666_0000_0000_0000));
    build_person(number, id, login_name)
}

fn build_person(number: u64, id: Uuid, login_name: String) -> Person {
    let mut random = Random::new(number ^ 0x3333_0000_0000);
    let first_name = random.choose(&FIRST_NAMES);
    let last_name =
        format!("{}{}{}", random.choose(&BEGINNINGS), random.choose(&MIDDLES), random.choose(&ENDS));
    let host = random.choose(&HOSTS);
    let email_address = format!("{first_name}.{last_name}.{number}@{host}");
    let phone_number = format!("+49 {} {:07}", 30 + random.below(900), random.below(10_000_000));
    let concurrency_token = format!("{:016x}{:06x}", random.next(), random.below(1 << 24));
    Person { id, login_name, first_name, last_name, email_address, phone_number, concurrency_token }
}

impl Person {
    /// The body of the request that creates the person.
    pub fn json(&self) -> String {
        format!(
            "{{\"loginName\":\"{}\",\"firstName\":\"{}\",\"lastName\":\"{}\",\"emailAddress\":\"{}\",\
             \"phoneNumber\":\"{}\"}}",
            self.login_name, self.first_name, self.last_name, self.email_address, self.phone_number
        )
    }
}

/// The number of groups for this many users, the big one included.
pub fn groups(users: u64) -> u64 {
    (users / 100).max(10) + 1
}

/// The number of members of the big group.
pub fn big_group(users: u64) -> u64 {
    users.min(BIG_GROUP_MEMBERS)
}

/// All memberships, as numbers of group and user, in the order of the table's key.
pub fn memberships(users: u64) -> Vec<(u64, u64)> {
    let ordinary = groups(users) - 1;
    let mut pairs: Vec<(u64, u64)> = (0..big_group(users)).map(|user| (BIG_GROUP, user)).collect();
    for user in 0..users {
        let mut random = Random::new(user ^ 0x1111_0000_0000);
        pairs.extend((0..3).map(|_| (1 + random.below(ordinary), user)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
