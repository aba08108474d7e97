//! Shows what the loader makes of a script: `cargo run -p lab-script --example show shop.js`

use lab_script::{Files, Program, Variables};

struct Folder;

impl Files for Folder {
    fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(name).map_err(|problem| problem.to_string())
    }
}

fn main() {
    for entry in std::env::args().skip(1) {
        match Program::load(&entry, &Folder, &Variables::default()) {
            Ok(program) => {
                for (name, text) in program.written() {
                    println!("// {name}\n{text}");
                }
                for site in program.sites() {
                    println!("{site:?}");
                }
                println!("{}", program.options());
            }
            Err(problems) => {
                for problem in problems {
                    println!("{problem}\n  {}", problem.help);
                }
            }
        }
    }
}
