//! Scripts load C modules such as cjson, which find Lua's functions in the program that loads them.

fn main() {
    println!("cargo:rustc-link-arg-bins=-rdynamic");
    println!("cargo:rerun-if-changed=build.rs");
}
