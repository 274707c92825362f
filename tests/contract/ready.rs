//! Readiness is answered from memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use chancery_store::{Class, Error, Mode};
use chancery_testkit::{Engine, on_both_engines};

use crate::until;

/// Releases everything that is held, also where the test fails.
struct Release(Arc<AtomicBool>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

on_both_engines! {
    /// Section 5: readiness is answered from memory: while the writer, every lane and connection,
    /// and every slot for background work is held, and more wait for them.
    async fn takes_no_slot_of_the_store(world: World) {
        let slots = match world.engine {
            Engine::Sqlite => 1 + 16 + 2,
            Engine::Postgres => 16 + 2,
        };
        let (held, release) = (Arc::new(AtomicUsize::new(0)), Release(Arc::default()));
        for (class, mode) in [Class::Ordinary, Class::Background].into_iter().flat_map(|class| [(class, Mode::Write), (class, Mode::Long)]) {
            for _ in 0..30 {
                let (store, held, free) = (world.app.store.with(class), Arc::clone(&held), Arc::clone(&release.0));
                chancery_testkit::spawn(async move {
                    let hold = store.run("Hold", mode, None, move |_| {
                        held.fetch_add(1, Ordering::SeqCst);
                        while !free.load(Ordering::SeqCst) {
                            std::thread::sleep(Duration::from_millis(5));
                        }
                        Ok::<(), Error>(())
                    });
                    let _ = hold.await;
                });
            }
        }
        until("all places are held", || async { held.load(Ordering::SeqCst) == slots }).await;
        assert!(world.app.store.figures().waiting > 0, "others wait");
        world.anonymous.get("/health/ready").await.expect(200);
        world.anonymous.get("/health/live").await.expect(200);
        assert_eq!(held.load(Ordering::SeqCst), slots, "nothing was let go");
    }
}
