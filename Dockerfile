# One static binary and nothing else: no shell, no libc, no certificates.
#   docker build --build-arg VERSION=1.0.0 --build-arg REVISION=$(git rev-parse HEAD) -t roce_exporter .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ARG REVISION=unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w \
      -X github.com/prometheus/common/version.Version=$VERSION \
      -X github.com/prometheus/common/version.Revision=$REVISION" \
    -o /roce_exporter .

FROM scratch
COPY --from=build /roce_exporter /roce_exporter
# Nobody in particular. On a switch give it the group that owns the socket of
# Redis (--group-add), or let it use Redis' TCP port on the loopback.
USER 65532:65532
EXPOSE 14791
ENTRYPOINT ["/roce_exporter"]
