//! A service of two processes, if the engine permits two to share a database.

use chancery_testkit::{Client, Engine, Process, World};

use super::browser::Browser;
use crate::free_address;

/// The processes of a service. An embedded database belongs to one process: all callers use that one.
pub struct Fleet {
    callers: Vec<Client>,
    public_url: String,
    _second: Option<Process>,
}

impl Fleet {
    /// The world's own process, and on PostgreSQL a second one that serves the same issuers.
    pub fn of(world: &World) -> Self {
        let mut callers = vec![world.anonymous.clone()];
        let second = (world.engine == Engine::Postgres).then(|| {
            let listen = free_address();
            callers.push(Client::anonymous(&format!("http://{listen}")));
            let environment = [
                ("CHANCERY_LISTEN", listen.as_str()),
                ("CHANCERY_PUBLIC_URL", world.base.as_str()),
                // all tests send from one address
                ("CHANCERY_PUBLIC_RATE_LIMIT", "off"),
                ("CHANCERY_FAILED_SIGN_INS", "off"),
            ];
            Process::start_configured(&world.database, &environment)
        });
        Self { callers, public_url: world.base.clone(), _second: second }
    }

    /// A client of one of the processes, round robin.
    pub fn caller(&self, number: usize) -> &Client {
        &self.callers[number % self.callers.len()]
    }

    /// A client of each process.
    pub fn callers(&self) -> &[Client] {
        &self.callers
    }

    /// A new browser at one of the processes.
    pub fn browser(&self, number: usize) -> Browser {
        Browser::of(self.caller(number), &self.public_url)
    }

    /// The same browser with its next requests at one of the processes.
    pub fn moved(&self, browser: &Browser, number: usize) -> Browser {
        let mut moved = self.browser(number);
        moved.cookies.clone_from(&browser.cookies);
        moved
    }
}

/// Pseudo-random numbers with a fixed seed (SplitMix64).
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    /// A number below this one.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}
