//! Has the linker pack the places in the program that its loader must adjust, 134,000 of them, where the C
//! library of this machine unpacks them: a twentieth of the program's size, for nothing. With an older one, or for
//! another machine, they stay as they are, since such a program would not start there.

use std::env;
use std::process::Command;

/// The first glibc whose loader unpacks them.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let of = |name: &str| env::var(name).unwrap_or_default();
    // There a linker that knows the option comes with Rust; elsewhere an older one would warn of it.
    let is_known = of("TARGET") == "x86_64-unknown-linux-gnu" && of("HOST") == of("TARGET");
    if is_known && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's glibc, which says `glibc 2.36`; `None` where that can't be told.
fn glibc() -> Option<(u32, u32)> {
    let told = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let text = String::from_utf8(told.stdout).ok()?;
    let (major, rest) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
