# Two stages: one installs what the lock file names and compiles the kernels, the other runs it as nobody in particular.
FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 NUMBA_CACHE_DIR=/opt/sluice/kernels
WORKDIR /opt/sluice
RUN python -m venv .venv
COPY requirements.lock ./
RUN .venv/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY models models
COPY service service
RUN .venv/bin/pip install --no-deps --no-build-isolation -e . && .venv/bin/python -m service.run.warm

FROM python:3.12-slim
RUN groupadd --gid 10001 sluice \
    && useradd --uid 10001 --gid 10001 --home-dir /opt/sluice --no-create-home sluice \
    && install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /opt/sluice /opt/sluice
# Owned by its user, because numba does not read a cache that it cannot write: on another kind of processor it compiles anew.
COPY --from=build --chown=10001:10001 /opt/sluice/kernels /opt/sluice/kernels
ENV PATH=/opt/sluice/.venv/bin:$PATH NUMBA_CACHE_DIR=/opt/sluice/kernels SLUICE_HOST=0.0.0.0 SLUICE_DATA=/data
USER 10001:10001
WORKDIR /opt/sluice
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=3)"]
CMD ["sluice", "serve"]
