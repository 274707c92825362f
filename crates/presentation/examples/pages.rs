//! Writes every page, with every sample and in every language, to a folder.
//!
//! `cargo run -p chancery-presentation --example pages -- FOLDER`

use std::{env, error::Error, fs};

use chancery_presentation::{language::Language, shipped, view};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("usage: pages FOLDER")?;
    fs::create_dir_all(&folder)?;
    for name in shipped::names() {
        for (sample, context) in &shipped::samples(name) {
            for language in Language::ALL {
                let page = view::shipped_in(language).render(name, context)?.html;
                fs::write(format!("{folder}/{name}-{sample}-{}.html", language.tag()), page)?;
            }
        }
    }
    Ok(())
}
