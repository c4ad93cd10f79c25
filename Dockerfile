# The Fanline image: API, worker and all other commands. Use: docs/deployment/README.md, "Containers".
FROM python:3.11-slim-bookworm AS build
ENV UV_PROJECT_ENVIRONMENT=/opt/fanline UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /build
# The dependencies first: this layer is built again only if their versions change.
COPY pyproject.toml README.md LICENSE ./
RUN uv sync --no-dev --extra=otel --no-install-project
COPY executor executor
COPY graph graph
COPY resolvers resolvers
COPY schema schema
COPY server server
COPY examples examples
RUN uv sync --no-dev --extra=otel --no-editable

FROM python:3.11-slim-bookworm
RUN groupadd --system --gid 10001 fanline \
 && useradd --system --uid 10001 --gid 10001 --home-dir /var/lib/fanline --shell /usr/sbin/nologin fanline \
 && install -d -o 10001 -g 10001 -m 700 /var/lib/fanline
COPY --from=build /opt/fanline /opt/fanline
ENV PATH=/opt/fanline/bin:$PATH FANLINE_DATA_DIR=/var/lib/fanline PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /var/lib/fanline
EXPOSE 8000
# The check answers within 2 seconds if the store does not, later if the machine is busy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health/ready')"]
ENTRYPOINT ["fanline"]
CMD ["serve", "--host", "0.0.0.0"]
