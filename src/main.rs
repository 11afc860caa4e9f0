//! The `portcullis` command.

/// The memory allocator. mimalloc halves the time of parsing JSON, and keeps the memory of a busy server flat.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    portcullis::cli::main()
}
